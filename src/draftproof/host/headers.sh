# Lists a model directory and reads the beginning of each file of weights, and no more (after ground.sh). A name that
# holds a control character cannot be told by a shell: the listing is then an error.
frame
field nonce && nonce=$value
field path && path=${value%/}
field room_bytes && room=$value
ended

listed() { say listing "{\"error\": \"$(text "$1")\", \"members\": [${2#, }]}"; exit 0; }

[ -d "$path/" ] || listed "No such directory" ""
(cd -- "$path/") 2>/dev/null || listed "Permission denied" ""
cd -- "$path/" || exit 1
here=$(pwd -P)
[ -r . ] || listed "Permission denied" ""
set +f
set -- .[!.]* ..?* *
set -f
[ $# -le 10000 ] || listed "$# names, more than are listed" ""
members=
for name in "$@"; do
    [ -e "./$name" ] || [ -L "./$name" ] || continue
    case $name in *[[:cntrl:]]*) listed "a name with a control character" "" ;; esac
    kind=file size=0 real= head=null error=
    if [ -L "./$name" ]; then
        real=$(readlink -m -- "./$name")
        [ "${real%/*}" = "$here" ] && real=${real##*/}
    fi
    if [ ! -e "./$name" ]; then
        kind=dangling
    else
        size=$(stat -L -c %s -- "./$name")
        if [ -d "./$name" ]; then kind=directory; elif [ ! -f "./$name" ]; then kind=special; fi
    fi
    case $kind$name in file*.safetensors | file*.safetensors.index.json)
        if (: <"./$name") 2>/dev/null; then
            wanted=$size
            case $name in *.safetensors) wanted=$(od -An -tu8 -N8 -- "./$name" | tr -d ' ') ;; esac
            # A length of more than fifteen digits is no header's, and beyond what a shell adds up.
            [ ${#wanted} -le 15 ] || wanted=999999999999999
            case $name in *.safetensors) wanted=$((${wanted:-0} + 8)) ;; esac
            if [ "$wanted" -gt "$size" ] || [ "$wanted" -gt "$room" ]; then wanted=1024; fi
            [ "$wanted" -ge 1024 ] || wanted=1024
            head=\"$(head -c "$wanted" -- "./$name" | base64 -w0)\"
            room=$((room - wanted))
            [ "$room" -ge 0 ] || listed "headers larger than are read at once" ""
        else
            error="Permission denied"
        fi
        ;;
    esac
    members="$members, {\"name\": \"$(text "$name")\", \"kind\": \"$kind\", \"size\": $size, \"real\": \"$(text "$real")\", \
\"plain\": $head, \"head\": null, \"error\": \"$error\"}"
done
listed "" "$members"
