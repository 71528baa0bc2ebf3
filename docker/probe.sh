#!/bin/sh
# How the agent in this container is, by exit code, for Docker and Kubernetes:
#   edge-agent-probe alive    its main loop comes round, or a build that it waits for goes on
#   edge-agent-probe ready    it reads: engines are loaded, and one inference has passed
# The agent touches the file that HEARTBEAT_FILE names at least every five seconds; in it stands what it does.
set -eu
file=${HEARTBEAT_FILE:-/run/edge-agent/heartbeat}
touched=$(stat -c %Y "$file")
[ $(($(date +%s) - touched)) -lt 60 ]
case ${1:-alive} in
  alive) ;;
  ready) grep -q '^ready$' "$file" ;;
  *) exit 64 ;;
esac
