#!/bin/sh
# Starts Redis for Holdfast with one user, who can reach only Holdfast's keys and channels and none of the commands that read or change
# the server. Arguments are passed to redis-server.
#
#   REDIS_PASSWORD         password of the user `holdfast`
#   REDIS_ADMIN_PASSWORD   password of a user `admin` with all rights; without it, none is created
set -eu
: "${REDIS_PASSWORD:?is not set: put it into .env}"

# Only hashes are written to disk.
hash() { printf %s "$1" | sha256sum | cut -d ' ' -f 1; }

umask 077
users=$(mktemp)
{
  echo 'user default off'
  echo "user holdfast on #$(hash "$REDIS_PASSWORD") resetkeys ~holdfast:* resetchannels &holdfast:* -@all" \
    '+@read +@write +@connection +@pubsub +@transaction -@dangerous -scan -randomkey -dbsize' \
    '+eval +evalsha +script|load +time +info +client|list'
  [ -z "${REDIS_ADMIN_PASSWORD:-}" ] || echo "user admin on #$(hash "$REDIS_ADMIN_PASSWORD") ~* &* +@all"
} > "$users"

# Redis needs no persistence: lost jobs are sent again. Data in flight must not be evicted. Protected mode is for servers
# without users. No client sends a longer value than 1 MB.
exec redis-server --aclfile "$users" --protected-mode no --save '' --appendonly no --maxmemory-policy noeviction --proto-max-bulk-len 1mb "$@"
