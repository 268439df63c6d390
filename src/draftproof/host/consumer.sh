# The open file 8 through the eyes of process $pid (after ground.sh), as far as a shell can look: under the same path,
# links not followed. Where the process has another file there, it may have this one elsewhere: that is not told here.
cannot_tell() { consumer="{\"reason\": \"$(text "$1")\"}"; }

# When the process began, in nanoseconds since the epoch, into $began; the later clock read last, so never too early.
began() {
    line=$(cat "/proc/$pid/stat") || return 1
    IFS=' .' read -r seconds hundredths _ </proc/uptime
    now_ns=$(date +%s%N)
    set -- ${line##*) }
    age=$((seconds * 1000000000 + 1$hundredths * 10000000 - 1000000000 - ${20} * (1000000000 / $(getconf CLK_TCK))))
    began=$((now_ns - age))
}

# Whether the process has the inode $1 of device $2 mapped.
has_mapped() {
    while read -r range _ _ _ inode name; do
        case $inode$name in "$1"*" (deleted)") continue ;; "$1$name") ;; *) continue ;; esac
        device=$(stat -L -c %d -- "/proc/$pid/map_files/$range" 2>/dev/null) || return 0
        [ "$device" = "$2" ] && return 0
    done <"/proc/$pid/maps"
    return 1
}

look_consumer() {
    own=/proc/$pid/root
    [ "$pid" != 0 ] || { cannot_tell "whose port it is the Python program finds, and python3 is not there"; return; }
    [ -d "/proc/$pid" ] || { cannot_tell "process $pid: No such process"; return; }
    space=$(readlink "/proc/$pid/ns/mnt" 2>/dev/null) || { cannot_tell "process $pid: Permission denied"; return; }
    [ -r "$own/" ] || { cannot_tell "process $pid: Permission denied"; return; }
    at=
    IFS=/
    for part in ${path#/}; do
        at="$at/$part"
        [ -L "$own$at" ] && { unset IFS; cannot_tell "a link at $at; python3 is not there to follow it as the process does"; return; }
    done
    unset IFS
    set -- $(stat -L -c '%i %d' /proc/self/fd/8)
    if [ "$(stat -c '%i %d' -- "$own$path" 2>/dev/null)" != "$1 $2" ]; then
        cannot_tell "process $pid has another file, or none, at $path; where else it may have this one python3 would look"
        return
    fi
    began || { cannot_tell "process $pid: it has ended"; return; }
    mapped=
    has_mapped "$1" "$2" 2>/dev/null && mapped=$pid
    consumer="{\"pid\": $pid, \"mount_namespace\": \"$space\", \"path\": \"$(text "$path")\", \
\"real_path\": \"$(text "$path")\", \"started_ns\": $began, \"stale_mounts\": [], \"mapped_by\": [$mapped], \
\"family\": [$pid], \"num_hidden\": 0, \"youngest_ns\": $began, \"shards\": [], \
\"shards_trouble\": \"shards are looked at by the Python program, and python3 is not there\", \
\"view\": {\"kind\": \"file\", \"real_path\": \"$(text "$path")\", \"sha256\": \"$(digest <"$own$path")\", \
\"length\": $length, \"data\": null, \"xattrs\": null, \"identity\": {$(identity "$own$path")}, \
\"file_system\": $(file_system)}}"
}
