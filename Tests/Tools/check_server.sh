#!/bin/sh
# Runs ServerTests with a server that is not ours: that of llama-cpp-python, which PyPI has, with the small model and a window of 2,048
# tokens. It listens on this machine only.
#   Tests/Tools/check_server.sh [MODEL.gguf]
# The first run installs the server into .build/server, and compiles it for some minutes. Needs cmake or pip's own, and a C++ compiler.
set -eu
cd "$(dirname "$0")/../.."
model=${1:-${XDG_DATA_HOME:-$HOME/.local/share}/foundation-models/models/SmolLM2-135M-Instruct.Q4_1.gguf}
[ -f "$model" ] || {
    echo "check_server: there is no model at $model; “fm model pull small” installs the small one" >&2
    exit 1
}
python=.build/server/bin/python
if ! "$python" -c 'import llama_cpp.server.app' 2>/dev/null; then
    python3 -m venv .build/server
    # Without tile instructions, which crash in this version (see Benchmarks/run).
    case $(uname -m) in
    x86_64) flags="-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON" ;;
    *) flags="-DGGML_NATIVE=ON" ;;
    esac
    CMAKE_ARGS="$flags -DLLAVA_BUILD=OFF" "$python" -m pip install --quiet --disable-pip-version-check \
        "llama-cpp-python[server]==0.3.36" >&2
fi
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
log=$(mktemp)
# A request that counts tokens would otherwise end a response that is being written.
"$python" -m llama_cpp.server --model "$model" --host 127.0.0.1 --port "$port" --n_ctx 2048 --n_threads "$(nproc)" \
    --interrupt_requests false >"$log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
tries=0
until "$python" -c "import urllib.request as r; r.urlopen('http://127.0.0.1:$port/v1/models', timeout=5)" 2>/dev/null; do
    tries=$((tries + 1))
    if [ "$tries" -gt 60 ] || ! kill -0 "$server" 2>/dev/null; then
        echo "check_server: the server did not start:" >&2
        tail -n 20 "$log" >&2
        exit 1
    fi
    sleep 1
done
status=0
FM_TEST_SERVER=http://127.0.0.1:$port/v1 ./test --filter ServerTests || status=$?
[ "$status" = 0 ] || tail -n 30 "$log" >&2
exit "$status"
