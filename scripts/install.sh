#!/bin/sh
# Installs fm below ~/.local, updates it, and removes it. No administrator is needed.
#
#   curl -fsSL ADDRESS/install.sh | sh -s -- ADDRESS
#   sh install.sh [ADDRESS] [--version V] [--prefix FOLDER] [--quiet]
#   fm-update                  the newest version, from the same address (this script, as it was installed)
#   fm-update --rollback       the version before
#   fm-update --uninstall
#
# ADDRESS, or FM_DOWNLOAD_URL, is where latest.json lies: a folder of a web server, or https://github.com/OWNER/REPO/releases.
#
# The files of a version are in FOLDER/lib/fm/VERSION-HASH. FOLDER/lib/fm/current is a link to one of these folders, and FOLDER/bin/fm
# is a link into it, so that a version is exchanged in one step, or not at all. Everything is in functions, and the last line calls
# one of them, inside of braces: of a script that was cut, nothing is run.
set -eu

say() { [ -n "$quiet" ] || printf '%s\n' "$*"; }
fail() {
    printf 'install: %s\nNothing was changed.\n' "$*" >&2
    exit 1
}

# An archive has at most this many bytes, and unpacked eight times as many.
maximum=1000000000

# fetch ADDRESS FILE BYTES: downloads at most so many bytes.
fetch() {
    case $1 in
    https://*) protocols='=https' ;;
    # Without encryption, anybody on the way could exchange the checksums together with the files.
    http://127.0.0.1[:/]* | http://localhost[:/]*) protocols='=http,https' ;;
    *) fail "$1 must begin with https://" ;;
    esac
    rm -f "$work/status"
    if command -v curl >/dev/null 2>&1; then
        { curl -fsSL --proto "$protocols" --proto-redir "$protocols" --connect-timeout 30 --speed-limit 1000 --speed-time 60 -- "$1" \
            2>"$work/error" || echo $? >"$work/status"; } | head -c $(($3 + 1)) >"$2"
    elif command -v wget >/dev/null 2>&1; then
        { wget -q -T 60 -t 2 -O - -- "$1" 2>"$work/error" || echo $? >"$work/status"; } | head -c $(($3 + 1)) >"$2"
    else
        fail "curl or wget is needed to download."
    fi
    # Whoever sends too much is cut, which is an error of curl too; so the size comes first.
    [ "$(wc -c <"$2")" -le "$3" ] || fail "$1 is larger than stated or allowed ($3 bytes)."
    [ ! -s "$work/status" ] || fail "$1 could not be downloaded. $(tail -n 1 "$work/error")"
}

# value NAME: the value of a field of the object in standard input. Names, hashes and numbers have no escapes.
value() { sed -n 's/.*"'"$1"'": *"\{0,1\}\([A-Za-z0-9._+~-]*\)"\{0,1\} *[,}].*/\1/p'; }

# Whether a version such as 2.36 is at least another one.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -t . -k 1,1n -k 2,2n | head -n 1)" = "$2" ]; }

check_system() {
    [ "$(uname -s)" = Linux ] || fail "only Linux is supported, not $(uname -s)."
    case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no fm for the architecture $(uname -m), only for x86_64 and aarch64." ;;
    esac
    glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc //p')
    [ -n "$glibc" ] || fail "this system has no glibc (Alpine, for example, has another library). Build fm from its source."
}

# The folder of a version: latest.json is there, and the files that it names.
find_folder() {
    case $address in
    https://github.com/*/releases) folder=$address/latest/download; [ -z "$version" ] || folder=$address/download/v$version ;;
    *) folder=$address; [ -z "$version" ] || folder=$address/v$version ;;
    esac
}

# Reads which archive is for this machine: name, hash and size.
read_index() {
    fetch "$folder/latest.json" "$work/index" 1000000
    # One object in a line, however the file is written.
    tr -d '\n\r' <"$work/index" | tr '{' '\n' >"$work/objects"
    grep -q '^ *"version": *"' "$work/objects" || fail "$folder/latest.json is not the list of a release (a page for browsers?)."
    newest=$(grep '^ *"version": *"' "$work/objects" | value version | head -n 1)
    printf '%s\n' "$newest" | grep -Eqx '[0-9]+\.[0-9]+\.[0-9]+(-[a-z]+\.?[0-9]+)?' || fail "$folder/latest.json has no valid version."
    [ -z "$version" ] || [ "$newest" = "$version" ] || fail "the server has version $newest there, not $version."
    grep '"kind": *"archive"' "$work/objects" | grep "\"arch\": *\"$arch\"" | head -n 1 >"$work/object" || true
    [ -s "$work/object" ] || fail "version $newest has no archive for $arch."
    name=$(value name <"$work/object")
    hash=$(value sha256 <"$work/object")
    size=$(value size <"$work/object")
    needed=$(value glibc <"$work/object")
    printf '%s\n' "$name" | grep -Eqx 'fm-[A-Za-z0-9._-]+\.tar\.gz' || fail "latest.json names a file “$name”, which is no archive of fm."
    printf '%s\n' "$hash" | grep -Eqx '[0-9a-f]{64}' || fail "latest.json has no valid SHA-256 of $name."
    printf '%s\n' "$size" | grep -Eqx '[0-9]{1,15}' || fail "latest.json has no valid size of $name."
    [ "$size" -le "$maximum" ] || fail "$name would have $size bytes; more than $maximum are not downloaded."
    if [ -n "$needed" ]; then
        at_least "$glibc" "$needed" || fail "this system has glibc $glibc, and fm needs $needed or newer. Build fm from its source."
    fi
}

# Downloads the archive, checks all of it before anything is unpacked, and unpacks it beside the installed versions.
unpack() {
    free=$(df -Pk "$home" | awk 'NR == 2 { print $4 }')
    [ "${free:-0}" -gt $((size * 4 / 1000)) ] || fail "too little space is free in $home."
    say "Downloading $name ($((size / 1000000)) MB) …"
    fetch "$folder/$name" "$work/archive" "$size"
    [ "$(wc -c <"$work/archive")" -eq "$size" ] || fail "$name is incomplete: $(wc -c <"$work/archive") of $size bytes."
    [ "$(sha256sum <"$work/archive" | cut -d ' ' -f 1)" = "$hash" ] || fail "$name has another SHA-256 than latest.json says."
    tar -tzf "$work/archive" >"$work/names" 2>/dev/null || fail "$name is no archive that can be read."
    tar -tvzf "$work/archive" >"$work/list" 2>/dev/null
    # Files and folders only, all in one folder: no links, no devices, no way out of the folder.
    if grep -Eqv '^[-d]' "$work/list" || grep -Eq '^/|(^|/)\.\.(/|$)' "$work/names" || grep -qv "^${name%.tar.gz}/" "$work/names"; then
        fail "$name has links, or files outside of its folder; it was not unpacked."
    fi
    awk -v most=$((maximum * 8)) '{ n += $3 } END { exit n > most }' "$work/list" || fail "$name would be too large when it is unpacked."
    mkdir "$work/tree"
    tar -xzf "$work/archive" -C "$work/tree" --no-same-owner --no-same-permissions || fail "$name could not be unpacked."
    tree=$work/tree/${name%.tar.gz}
    said=$("$tree/bin/fm" --version 2>&1) || fail "the program does not run on this system: $said"
    [ "$said" = "$newest" ] || fail "the program says that it is version $said, not $newest."
}

# link TARGET PATH: makes or exchanges a link in one step.
link() {
    ln -s "$1" "$2.new.$$"
    mv -T "$2.new.$$" "$2"
}

# The links below the prefix: path and target.
links() {
    cat <<END
bin/fm ../lib/fm/current/bin/fm
bin/fm-update ../lib/fm/current/share/fm/install.sh
share/man/man1/fm.1.gz ../../../lib/fm/current/share/man/man1/fm.1.gz
share/bash-completion/completions/fm ../../../lib/fm/current/share/bash-completion/completions/fm
share/zsh/site-functions/_fm ../../../lib/fm/current/share/zsh/site-functions/_fm
share/fish/vendor_completions.d/fm.fish ../../../lib/fm/current/share/fish/vendor_completions.d/fm.fish
END
}

# A file of somebody else in the place of a link stays: a program fm that was installed in another way, for example.
check_links() {
    links | while read -r path target; do
        if [ -e "$prefix/$path" ] || [ -L "$prefix/$path" ]; then
            [ "$(readlink "$prefix/$path" 2>/dev/null)" = "$target" ] || { echo "$prefix/$path"; break; }
        fi
    done >"$work/foreign"
    [ ! -s "$work/foreign" ] || fail "$(cat "$work/foreign") exists and is not of this script. Remove it first, or choose another --prefix."
}

clean() {
    rm -rf "$work"
    path=$home
    while [ -n "$made" ] && rmdir "$path" 2>/dev/null; do made=${made#x} path=${path%/*}; done
}

install_version() {
    [ -n "$address" ] || fail "from where? Give the address of the downloads, or set FM_DOWNLOAD_URL to it."
    check_system
    # Folders that were not there go away again if nothing is installed.
    made=
    for path in "$prefix" "$prefix/lib" "$home"; do [ -d "$path" ] || made="x$made"; done
    mkdir -p "$home"
    work=$(mktemp -d "$home/.install.XXXXXX")
    trap clean EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    find_folder
    read_index
    check_links
    entry=$newest-$(printf '%s' "$hash" | cut -c 1-12)
    old=$(readlink "$home/current" 2>/dev/null || true)
    if [ "$entry" = "$old" ]; then
        say "fm $newest is installed already."
    else
        if [ ! -d "$home/$entry" ]; then
            unpack
            mv "$tree" "$home/$entry"
        fi
        [ -z "$old" ] || link "$old" "$home/previous"
        link "$entry" "$home/current"
    fi
    printf '%s\n' "$address" >"$work/source"
    mv "$work/source" "$home/source"
    links | while read -r path target; do
        mkdir -p "$(dirname "$prefix/$path")"
        link "$target" "$prefix/$path"
    done
    # The version before stays, older ones do not.
    for path in "$home"/*-*; do
        case ${path##*/} in "$entry" | "$(readlink "$home/previous" 2>/dev/null)") ;; *) rm -rf "$path" ;; esac
    done
    [ "$entry" = "$old" ] || say "fm $newest is installed: $prefix/bin/fm"
    case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) say "Your PATH does not have $prefix/bin. Add to the profile of your shell: export PATH=\"$prefix/bin:\$PATH\"" ;;
    esac
}

rollback() {
    old=$(readlink "$home/current" 2>/dev/null || true)
    entry=$(readlink "$home/previous" 2>/dev/null || true)
    [ -n "$entry" ] && [ -d "$home/$entry" ] || fail "no version before is kept in $home."
    link "$entry" "$home/current"
    link "$old" "$home/previous"
    say "fm ${entry%-*} is in use again; --rollback once more goes back to ${old%-*}."
}

uninstall() {
    [ -L "$home/current" ] || fail "there is no fm that this script installed in $prefix."
    links | while read -r path target; do
        [ "$(readlink "$prefix/$path" 2>/dev/null)" = "$target" ] || continue
        rm "$prefix/$path"
        # Folders that are empty now were made for the link, or are not missed.
        (cd "$prefix" && rmdir -p "$(dirname "$path")" 2>/dev/null) || true
    done
    rm -rf "$home"
    rmdir "$prefix/lib" "$prefix" 2>/dev/null || true
    say "fm was removed. Its models stay in ${XDG_DATA_HOME:-$HOME/.local/share}/foundation-models and ${XDG_CACHE_HOME:-$HOME/.cache}/foundation-models."
}

main() {
    quiet='' version='' action=install_version prefix='' address=''
    while [ $# -gt 0 ]; do
        case $1 in
        --version) version=${2:?} && shift ;;
        --version=*) version=${1#*=} ;;
        --prefix) prefix=${2:?} && shift ;;
        --prefix=*) prefix=${1#*=} ;;
        --rollback) action=rollback ;;
        --uninstall) action=uninstall ;;
        --quiet | -q) quiet=yes ;;
        -h | --help)
            echo "sh install.sh [ADDRESS] [--version V] [--prefix FOLDER] [--quiet] [--rollback] [--uninstall]"
            exit 0
            ;;
        -*) fail "$1 is not known." ;;
        *) address=$1 ;;
        esac
        shift
    done
    version=${version#v}
    case $version in *[!A-Za-z0-9.-]*) fail "“$version” is no version." ;; esac
    # As “fm-update”, it works on the installation that it is a part of.
    own=$(cd "$(dirname "$0")" 2>/dev/null && pwd) || own=
    if [ -z "$prefix" ] && [ "${0##*/}" = fm-update ] && [ -L "$own/../lib/fm/current" ]; then prefix=$(cd "$own/.." && pwd); fi
    prefix=${prefix:-${HOME:?}/.local}
    case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
    home=$prefix/lib/fm
    address=${address:-${FM_DOWNLOAD_URL:-$(cat "$home/source" 2>/dev/null || true)}}
    address=${address%/}
    $action
}

{ main "$@"; exit; }
