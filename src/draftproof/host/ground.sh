# What the shell programs stand on: framed talk, facts about the machine, digests. POSIX sh, GNU coreutils
# (8.24 or newer: sync FILE), grep, sed; flock(1) where it is there. For hosts without a Python interpreter.
set -u -f
mask=$(umask)
umask 077
LC_ALL=C
export LC_ALL
trap '' PIPE
nonce= heard=yes

say() { printf '%s %s %s\n' "$nonce" "$1" "$2" 2>/dev/null || heard=no; }

# A text inside a JSON string; control characters cannot be in a name that got this far, elsewhere they show as ?.
text() { printf '%s' "$1" | tr '\000-\037' '?' | sed 's/[\\"]/\\&/g'; }

refuse() { say refused "{\"code\": \"$1\", \"facts\": {\"found\": \"$(text "$2")\"${3:-}}}"; exit 0; }

failed() { say failed "{\"step\": \"$1\", \"error\": \"$(text "$2")\", \"errno\": null}"; exit 0; }

# The next frame into $fields. read and head take not one byte more than they need.
frame() {
    IFS= read -r line || refuse request-cut 0
    set -- $line
    [ $# = 3 ] && [ "$1" = draftproof/1 ] || refuse request-damaged "$#"
    case $2 in *[!0-9]* | '') refuse request-damaged length ;; esac
    [ "$2" -le 1048576 ] || refuse request-damaged "$2"
    fields=$(head -c "$2" && echo .)
    fields=${fields%.}
    [ "$(printf %s "$fields" | digest)" = "$3" ] || refuse request-cut "${#fields}"
}

# One field into $value.
field() {
    line=$(printf '%s\n' "$fields" | grep "^$1 ") || refuse request-damaged "$1"
    value=${line##* }
    case $line in "$1 s "*) value=$(printf %s "$value" | base64 -d && echo .) && value=${value%.} ;; esac
}

# Nothing more may come: the sender closes its side after the last byte.
ended() { [ "$(head -c 1 | wc -c)" -eq 0 ] || refuse request-long 1; }

digest() { sha256sum | cut -c1-64; }

# Milliseconds of this boot's clock into $now_ms.
now() {
    IFS=' .' read -r seconds hundredths _ </proc/uptime
    now_ms=$((seconds * 1000 + 1$hundredths * 10 - 1000))
}

machine() {
    now
    printf '{"boot_id": "%s", "machine": "%s", "hostname": "%s", "uid": %s, "mount_namespace": "%s", ' \
        "$(cat /proc/sys/kernel/random/boot_id)" \
        "$(printf %s "$(cat /etc/machine-id 2>/dev/null)" | digest | cut -c1-16)" \
        "$(text "$(uname -n)")" "$(id -u)" "$(readlink /proc/self/ns/mnt)"
    printf '"monotonic_ms": %s, "python": null, "preload": "%s"}' "$now_ms" "$(text "${LD_PRELOAD:-}")"
}

# The mount that holds what is open as descriptor 8.
mount_of_8() {
    number=$(grep '^mnt_id:' /proc/self/fdinfo/8 | tr -dc 0-9)
    kind=unknown point= inner= device= options= super=
    while read -r id _ dev root place opts rest; do
        [ "$id" = "$number" ] || continue
        set -- ${rest#*- }
        kind=$1 point=$place inner=$root device=$dev options=$opts super=$3
    done </proc/self/mountinfo
}

file_system() {
    printf '{"type": "%s", "mount_point": "%s", "root": "%s", "device": "%s", ' \
        "$(text "$kind")" "$(text "$point")" "$(text "$inner")" "$device"
    printf '"options": "%s", "super_options": "%s"}' "$(text "$options")" "$(text "$super")"
}

# What tells one file from another, as members of a JSON object; links are followed, so the name is checked first.
identity() {
    set -- $(stat -L -c '%d %i %.9Z %.9Y %s %a %u %g %h' -- "$1")
    printf '"dev": %s, "ino": %s, "ctime_ns": %s%s, "mtime_ns": %s%s, "size": %s, ' \
        "$1" "$2" "${3%.*}" "${3#*.}" "${4%.*}" "${4#*.}" "$5"
    printf '"mode": %s, "uid": %s, "gid": %s, "nlink": %s' "$((0$6))" "$7" "$8" "$9"
}

# The open file 8: $sum, $length, and its bytes in base64 as $data where it has at most $1 of them.
read_8() {
    data= length=$(stat -L -c %s /proc/self/fd/8)
    if [ "$length" -le "$1" ]; then
        data=$(base64 -w0 </proc/self/fd/8) || return 1
        sum=$(printf %s "$data" | base64 -d | digest)
        length=$(printf %s "$data" | base64 -d | wc -c)
        data=\"$data\"
    else
        data=null sum=$(sha256sum </proc/self/fd/8) || return 1
        sum=${sum%% *}
    fi
}

sync --help 2>/dev/null | grep -q -- --file-system || { echo "no sync of one file here: GNU coreutils 8.24" >&2 && exit 1; }
