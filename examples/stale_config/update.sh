#!/usr/bin/env bash
# Usage: update.sh INTENDED DEPLOYED
# Replaces a deployed config, the way it was done: a script fed to `bash -s` through a here-document.
#
# `cat` stands for any command that reads its standard input, as `ssh host ...` without -n does. Here the
# standard input is the rest of this script: it is eaten, the write below never runs, and nothing fails.
bash -s -- "$1" "$2" <<'EOF'
cat > /dev/null
cp -- "$1" "$2"
echo "updated $2"
EOF
