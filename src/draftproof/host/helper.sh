# Puts one file in place and reads it before and after (after ground.sh): the steps of the Python helper, as far as a
# shell can. The new bytes are synced by the dd that wrote them; the working directory stands for the open directory.
frame
field nonce && nonce=$value
field path && path=$value
field root && root=${value%/}
field patience_ms && patience_ms=$value
field keep_bytes && keep=$value
[ "$keep" -le 8388608 ] || keep=8388608

case $path in "$root"/*) ;; *) refuse escapes-root "$path" ;; esac
before=
IFS=/
for part in ${path#/}; do
    case $part in '' | . | ..) refuse escapes-root "$path" ;; esac
    case $before in models--* | datasets--* | spaces--*)
        case $part in blobs | snapshots | refs) refuse hub-cache "$path" ;; esac ;;
    esac
    before=$part
done
unset IFS
case $path in */) refuse escapes-root "$path" ;; esac
name=${path##*/} parent=${path%/*}
parent=${parent:-/}
[ -n "$name" ] || refuse not-regular "the root itself"
[ "$(printf %s "$name" | wc -c)" -le 150 ] || refuse name-too-long "${#name}"
trouble=$(cd -P -- "$parent" 2>&1) || refuse parent-missing "${trouble##*: }"
cd -P -- "$parent" || exit 1
[ "$(pwd -P)" = "$parent" ] || refuse symlink "$(pwd -P)" ", \"resolved\": \"$(text "$(readlink -m -- "$path")")\""

set -- $(stat -c '%u %a' .)
[ "$((0$2 & 2))" -eq 0 ] || [ "$((0$2 & 01000))" -ne 0 ] || refuse parent-foreign-writable "mode $2"
case $1 in "$(id -u)" | 0) ;; *) refuse parent-foreign-writable "owner uid $1" ;; esac
exec 8<.
mount_of_8
case ,$options,$super, in *,ro,*) refuse read-only "the file system is mounted read-only" ;; esac
escaped=$(printf %s "$path" | sed 's/\\/\\134/g; s/ /\\040/g')
cut -d' ' -f5 /proc/self/mountinfo | grep -qxF -- "$escaped" && refuse mount-point "$path"

locked=no
if command -v flock >/dev/null; then
    exec 9<.
    flock -w "$((patience_ms / 1000 + 1))" 9 || refuse busy "another verified write holds this directory"
    locked=yes
fi

# What is under the name now: $stamp (with the digest), $old, $old_sum.
look() {
    old=null old_sum=absent stamp=absent
    [ -L "./$name" ] && refuse symlink "$(readlink -- "./$name")" \
        ", \"resolved\": \"$(text "$(readlink -m -- "$path")")\""
    [ -e "./$name" ] || return 0
    [ -f "./$name" ] || refuse not-regular "$(stat -c %A -- "./$name" | cut -c1)"
    (: <"./$name") 2>/dev/null || failed "read the target" "cannot be opened"
    exec 8<"./$name"
    read_8 "$1" || failed "read the target" "cannot be read"
    old_sum=$sum
    stamp="$(stat -L -c '%d %i %.9Z %s' /proc/self/fd/8) $sum"
    old="{\"sha256\": \"$sum\", \"length\": $length, \"xattrs\": null, $(identity /proc/self/fd/8)}"
}
data=null
look "$keep"
[ "$old" = null ] && data=null
if [ "$old" != null ]; then
    set -- $(stat -c '%h %a' -- "./$name")
    if [ "$1" = 0 ]; then refuse conflict "replaced by another writer while it was looked at"; fi
    [ "$1" = 1 ] || refuse many-names "$1"
    [ "$((0$2 & 0222))" -ne 0 ] || refuse read-only "mode $2: no write bit at all"
fi
first=$stamp old_first=$old_sum
say preimage "{\"old\": $old, \"data\": $data, \"machine\": $(machine), \"file_system\": $(file_system)}"
data=null

frame
field expected_old && expected=$value
field length && size=$value
field sha256 && wanted=$value
field deadline_ms && deadline_ms=$value
[ "$expected" = "$old_first" ] || refuse conflict "$old_first"
start=".$name.draftproof-"
part="$start$nonce-$(printf %s "$expected" | cut -c1-16)-$(printf %s "$wanted" | cut -c1-16).part"
trap 'rm -f -- "./$part"' EXIT
trap 'exit 1' HUP INT TERM

removed= kept=
set +f
for stale in "./$start"*; do
    [ -e "$stale" ] || continue
    case $locked$stale in
    yes*.part) rm -f -- "$stale" && removed="$removed, \"$(text "${stale#./}")\"" ;;
    *) kept="$kept, \"$(text "${stale#./}")\"" ;;
    esac
done
set -f

trouble=$(dd of="./$part" conv=excl,fsync iflag=count_bytes,fullblock count="$size" bs=65536 status=none 2>&1) ||
    failed "write and fsync of the file" "${trouble##*: }"
[ "$(stat -c %s -- "./$part")" = "$size" ] || refuse request-cut "$(stat -c %s -- "./$part")"
ended
if [ "$old_first" = absent ]; then
    mode=$(printf %o "$((0666 & ~0$mask))")
    trouble=$(chmod "$mode" "./$part" 2>&1) || failed "set the mode" "$trouble"
    like="$mode $(stat -c '%u %g' -- "./$part")"
else
    trouble=$(cp --attributes-only --preserve=mode,ownership,xattr -- "./$name" "./$part" 2>&1) ||
        failed "copy owner, mode and attributes" "${trouble##*: }"
    like=$(stat -c '%a %u %g' -- "./$name")
fi
trouble=$(sync -- "./$part" 2>&1) || failed "fsync of the file's attributes" "${trouble##*: }"
staged=$(digest <"./$part")
[ "$staged" = "$wanted" ] || refuse staged-differs "$staged"
found=$(stat -c '%a %u %g' -- "./$part")
[ "$found" = "$like" ] || refuse staged-differs "mode, uid, gid $found, not $like"
inode=$(stat -c %i -- "./$part")
say staged "{\"sha256\": \"$staged\", \"length\": $size}"

look 0
[ "$stamp" = "$first" ] || refuse conflict "changed while we wrote"
[ "$heard" = yes ] || refuse unheard "the sender has gone"
now
[ "$now_ms" -le "$deadline_ms" ] || refuse late "$now_ms"
if [ "$old_first" = absent ]; then
    how="ln to a free name"
    if ! trouble=$(ln -T -- "./$part" "./$name" 2>&1); then
        [ -e "./$name" ] && refuse conflict "appeared while we wrote"
        failed publish "${trouble##*: }"
    fi
    rm -f -- "./$part"
else
    how="mv"
    trouble=$(mv -fT -- "./$part" "./$name" 2>&1) || failed publish "${trouble##*: }"
fi
[ "$(stat -c %i -- "./$name")" = "$inode" ] || failed publish "the name holds another file"
directory_sync=ok
trouble=$(sync -- . 2>&1) || directory_sync=$(text "${trouble##*: }")
limits='"by a shell program, python3 is not there: a foreign write between the last look and the rename would be lost"'
limits="$limits, \"extended attributes were copied by cp and not read back\""
[ "$locked" = yes ] || limits="$limits, \"no lock, flock is not there: writers of ours do not exclude each other\""
say receipt "{\"published\": \"$how\", \"identity\": {$(identity "./$name")}, \"file_sync\": \"ok\", \
\"directory_sync\": \"$directory_sync\", \"removed\": [${removed#, }], \"kept\": [${kept#, }], \"limits\": [$limits]}"
