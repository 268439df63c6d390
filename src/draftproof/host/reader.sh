# Says what is under a path, as any program that opens it would find it (after ground.sh). Shares nothing with the
# writer: another process, the path resolved again, the whole file read.
frame
field nonce && nonce=$value
field path && path=$value
field keep_bytes && keep=$value
field is_device_asked && is_device=$value
field pid && pid=$value
field port && port=$value
field settle_ms && settle_ms=$value
ended
[ "$keep" -le 8388608 ] || keep=8388608

quiet=false
if [ "$settle_ms" -gt 0 ]; then
    if [ ! -d "${path%/*}/" ]; then
        quiet=true
    elif command -v flock >/dev/null && [ -r "${path%/*}/" ]; then
        exec 9<"${path%/*}/"
        flock -s -w "$((settle_ms / 1000 + 1))" 9 && quiet=true
        exec 9<&-
    fi
fi

real=$(text "$(readlink -m -- "$path")")
past_cache=null consumer=null
[ "$pid$port" = 00 ] || cannot_tell "there is no file here that process $pid could see"
if ! trouble=$(stat -L -- "$path" 2>&1 >/dev/null); then
    dangling=false
    [ -L "$path" ] && dangling=true
    seen="\"kind\": \"unreadable\", \"error\": \"$(text "${trouble##*: }")\""
    case $trouble in *": No such file or directory") seen="\"kind\": \"absent\", \"is_dangling\": $dangling" ;; esac
elif [ ! -f "$path" ]; then
    seen="\"kind\": \"other\", \"found\": \"$(stat -L -c %A -- "$path" | cut -c1)\""
elif ! (: <"$path") 2>/dev/null; then
    seen="\"kind\": \"unreadable\", \"error\": \"cannot be opened\""
else
    exec 8<"$path"
    mount_of_8
    if read_8 "$keep"; then
        seen="\"kind\": \"file\", \"sha256\": \"$sum\", \"length\": $length, \"data\": $data, \"xattrs\": null"
        seen="$seen, \"identity\": {$(identity /proc/self/fd/8)}, \"file_system\": $(file_system)"
        [ "$pid$port" = 00 ] || look_consumer
    else
        seen="\"kind\": \"unreadable\", \"error\": \"cannot be read\""
    fi
    if [ "$is_device" = 1 ]; then
        case $kind in
        tmpfs | ramfs | devtmpfs) past_cache="{\"reason\": \"$kind: there is no device below it\"}" ;;
        *)
            told=$({ {
                dd if=/proc/self/fd/8 iflag=direct bs=1048576 status=none 2>/dev/null
                echo "status $?" >&3
            } | digest >&3; } 3>&1)
            past_cache='{"reason": "dd iflag=direct failed"}'
            case $told in *"status 0"*)
                past_cache="{\"sha256\": \"$(printf '%s\n' "$told" | grep -v status)\", \"how\": \"O_DIRECT read by dd\"}" ;;
            esac
            ;;
        esac
    fi
fi
say seen "{\"seen\": {$seen, \"real_path\": \"$real\"}, \"is_quiet\": $quiet, \"machine\": $(machine), \
\"device\": $past_cache, \"consumer\": $consumer}"
