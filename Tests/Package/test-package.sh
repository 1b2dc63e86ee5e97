#!/bin/sh
# Tests the files of a release in clean Debian systems without a compiler: each is installed, used and removed.
#
#   Tests/Package/test-package.sh DIST MODEL.gguf [FOLDER]     as root, with debootstrap, curl and python3
#
# FOLDER (default: /var/tmp/fm-roots) keeps the systems for the next run. RELEASES (default: “bookworm trixie”) names Debian's releases,
# FORMS (default: “archive deb wheel script”) what is installed. Each test has a layer of its own over a system, in a namespace of mounts.
set -eu
dist=$(cd "$1" && pwd)
model=$(readlink -f "$2")
roots=${3:-/var/tmp/fm-roots}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$roots"
roots=$(cd "$roots" && pwd)

# The mounts of a test are gone with its namespace.
if [ "${IN_NAMESPACE:-}" = "" ]; then
    exec env IN_NAMESPACE=yes unshare --mount -- "$here/${0##*/}" "$dist" "$model" "$roots"
fi

prepare() {
    [ -d "$roots/$1" ] && [ -f "$roots/$1/etc/debian_version" ] || debootstrap --variant=minbase "$1" "$roots/$1" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$roots/$1.log"
    [ -f "$roots/$1-tools/complete" ] || {
        # What the tests need, in a layer of its own: the tests of the bare system are without it.
        rm -rf "$roots/$1-tools" "$roots/$1-tools.work"
        mkdir -p "$roots/$1-tools" "$roots/$1-tools.work" "$roots/mnt"
        mount -t overlay overlay -o "lowerdir=$roots/$1,upperdir=$roots/$1-tools,workdir=$roots/$1-tools.work" "$roots/mnt"
        cp /etc/resolv.conf "$roots/mnt/etc/"
        chroot "$roots/mnt" sh -c "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
            curl fish man-db python3-pip python3-venv zsh" >"$roots/$1-tools.log" 2>&1
        umount "$roots/mnt"
        touch "$roots/$1-tools/complete"
    }
}

# enter RELEASE LAYERS: a fresh layer at $root.
enter() {
    root=$roots/mnt
    rm -rf "$roots/upper" "$roots/work"
    mkdir -p "$root" "$roots/upper" "$roots/work"
    mount -t overlay overlay -o "lowerdir=$2,upperdir=$roots/upper,workdir=$roots/work" "$root"
    mount -t proc proc "$root/proc"
    mkdir -p "$root/dist" "$root/model"
    mount --bind -o ro "$dist" "$root/dist"
    mount --bind -o ro "$(dirname "$model")" "$root/model"
    cp /etc/resolv.conf "$root/etc/"
}
leave() { umount "$root/dist" "$root/model" "$root/proc" "$root"; }
inside() { env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 chroot "$root" "$@"; }

# Everything but logs, caches, and what dpkg and the use of fm itself keep: models, and a folder “bin” for cookies, which Foundation makes.
list() { # folders too, but of what tar and pip have unpacked, as they leave folders
    case $form in archive | wheel) set -- "! -type d" ;; *) set -- "" ;; esac
    # shellcheck disable=SC2086 # a test of find, or nothing
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./dist -o -path ./model -o -path ./var/log -o -path ./var/cache -o -path ./tmp -o \
        -path ./root/.cache -o -path ./root/.local/share/foundation-models -o -path ./var/lib/apt -o -path ./dev -o -path ./root/.config -o \
        -path ./root/.local/share/fish \) -prune -o $1 -print | grep -v '^./var/lib/dpkg/\(.*-old\|lock.*\|triggers/.*\|info/format\)$' | grep -vx './root/.local\(/share\(/bin\)\{0,1\}\)\{0,1\}' | sort)
}

passed=0 failed=0
check() {
    name=$1
    shift
    if output=$("$@" 2>&1); then passed=$((passed + 1)); else
        failed=$((failed + 1))
        printf 'FAILED: %s %s: %s\n%s\n' "$release" "$form" "$name" "$output" | head -n 30 >&2
    fi
}
says() { # WORDS COMMAND …: the output has the words
    words=$1
    shift
    output=$("$@" 2>&1) || { echo "$output"; return 1; }
    printf '%s' "$output" | grep -qF -- "$words" || { echo "without “$words”: $output"; return 1; }
}

archive=$(basename "$dist"/fm-*-linux-"$(uname -m)".tar.gz)
deb=$(basename "$dist"/fm_*_"$(dpkg --print-architecture)".deb)
wheel=$(basename "$dist"/foundation_models_fm-*_"$(uname -m)".whl)
version=$(sed -n 's/.*"version": "\(.*\)",/\1/p' "$dist/latest.json")
installed() {
    case $form in
    archive) inside tar -xzf "/dist/$archive" -C /usr/local --strip-components=1 --no-same-owner ;;
    deb) inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "/dist/$deb" ;;
    wheel) inside python3 -m pip install -q --break-system-packages --root-user-action=ignore --no-index "/dist/$wheel" ;;
    script) inside sh /install.sh "http://127.0.0.1:$port" ;;
    esac
}
removed() {
    case $form in
    archive) inside sh -c "cd /usr/local && tar -tzf /dist/$archive | grep -v '/\$' | cut -d / -f 2- | xargs rm" ;;
    deb) inside apt-get purge -y -q fm ;;
    wheel) inside python3 -m pip uninstall -q -y --break-system-packages --root-user-action=ignore foundation-models-fm ;;
    script) inside /root/.local/bin/fm-update --uninstall ;;
    esac
}

# Serves the files to install.sh, and the model to “fm model pull”, on this machine only.
serve=$(mktemp -d)
trap 'kill $server 2>/dev/null; rm -rf "$serve"' EXIT
ln -s "$dist"/* "$serve/"
ln -s "$model" "$serve/model.gguf"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
python3 -m http.server -d "$serve" -b 127.0.0.1 "$port" >/dev/null 2>&1 &
server=$!

ask='Name three colours.'
for release in ${RELEASES:-bookworm trixie}; do
    prepare "$release"
    # The bare system: no Python, no curl, no certificates.
    for form in ${FORMS:-archive deb wheel script}; do
        case $form in wheel | script) continue ;; esac
        enter "$release" "$roots/$release"
        [ "$form" = deb ] && inside apt-get update -q >/dev/null 2>&1
        check "installs in the bare system" installed
        check "version in the bare system" says "$version" inside fm --version
        check "all libraries are there" sh -c "! env -i PATH=/usr/bin:/bin chroot '$root' sh -c 'ldd \$(command -v fm)' | grep 'not found'"
        check "answers in the bare system" says " " inside env FM_MODEL="/model/$(basename "$model")" fm --greedy --max-tokens 20 "$ask"
        leave
    done
    for form in ${FORMS:-archive deb wheel script}; do
        enter "$release" "$roots/$release-tools:$roots/$release"
        cp "$here/../../scripts/install.sh" "$root/install.sh"
        list >"$serve/before"
        check "installs" installed
        bin=$(inside sh -c 'PATH=$PATH:/root/.local/bin; command -v fm')
        share=$(dirname "$(dirname "$bin")")/share
        check "version" says "$version" inside "$bin" --version
        # A model from a web server, which Foundation's requests and the installation of models need.
        check "installs a model" inside "$bin" model pull "http://127.0.0.1:$port/model.gguf"
        check "answers with it" says " " inside "$bin" --model model --greedy --max-tokens 20 "$ask"
        check "answers with a file" says " " inside env FM_MODEL="/model/$(basename "$model")" "$bin" --greedy --max-tokens 20 "$ask"
        check "finds certificates and a hub" sh -c \
            "env -i HOME=/root chroot '$root' $bin model pull no-such-owner/no-such-repository 2>&1 | grep -qv certificate"
        # A server, and a client.
        inside "$bin" serve --port 18977 --model model >/dev/null 2>"$serve/log" &
        process=$!
        for _ in $(seq 100); do curl -fs http://127.0.0.1:18977/health >/dev/null 2>&1 && break || sleep 0.1; done
        check "serves" says '"content"' inside curl -fsS http://127.0.0.1:18977/v1/chat/completions -H 'Content-Type: application/json' \
            -d "{\"model\": \"model\", \"max_tokens\": 10, \"messages\": [{\"role\": \"user\", \"content\": \"$ask\"}]}"
        pid=$(cat /proc/$process/task/$process/children 2>/dev/null)
        kill -TERM "${pid:-$process}" 2>/dev/null || true
        wait $process 2>/dev/null && status=0 || status=$?
        check "ends at SIGTERM (status $status)" [ "$status" -eq 0 ]
        # The shells and the man page.
        check "man page" says "language model" inside env PATH="/usr/bin:/bin:$(dirname "$bin")" MANPAGER=cat man fm
        check "completions of bash" says model inside bash -c \
            ". $share/bash-completion/completions/fm && complete -p fm && COMP_WORDS=(fm mod) COMP_CWORD=1 COMP_LINE='fm mod' COMP_POINT=6 && _fm fm mod fm && printf '%s\n' \"\${COMPREPLY[@]}\""
        functions=$share/zsh/site-functions
        [ "$form" != deb ] || functions=$share/zsh/vendor-completions
        check "completions of zsh" says _fm inside zsh -fc "fpath=($functions \$fpath); autoload -U compinit && compinit -D -u && autoload +X _fm && echo \$_comps[fm]"
        check "completions of fish" says model inside fish -c "source $share/fish/vendor_completions.d/fm.fish; complete -C 'fm mod'"
        case $form in
        deb)
            check "unit" inside grep -q "^ExecStart=/usr/bin/fm" /usr/lib/systemd/system/fm-serve.service
            check "keys for root only" [ "$(stat -c %a "$root/etc/fm-serve.keys")" = 600 ]
            check "keys can be used" says fine inside "$bin" serve --check --keys /etc/fm-serve.keys
            check "not enabled" [ ! -e "$root/etc/systemd/system/multi-user.target.wants/fm-serve.service" ]
            check "reinstalls" inside apt-get install -y -q --reinstall --no-install-recommends "/dist/$deb"
            ;;
        wheel)
            check "module" says "$version" inside python3 -m foundation_models_fm --version
            check "path of the module" says "$bin" inside python3 -c "import foundation_models_fm as m; print(m.path())"
            check "in an environment" says "$version" inside sh -c "python3 -m venv /tmp/v && /tmp/v/bin/pip install -q --no-index /dist/$wheel && \
                /tmp/v/bin/fm --version && /tmp/v/bin/python -c 'import foundation_models_fm as m; assert m.path() == \"/tmp/v/bin/fm\", m.path()'"
            ;;
        script) check "is installed already" says already inside sh -c "PATH=\$PATH:/root/.local/bin fm-update" ;;
        esac
        check "removes" removed
        list >"$serve/after"
        # /usr/local/lib/python… is made by Debian's pip itself.
        check "nothing is left" sh -c "! diff '$serve/before' '$serve/after' | grep -v '^[0-9]' | grep -v '/usr/local/lib/python3'"
        leave
    done
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
