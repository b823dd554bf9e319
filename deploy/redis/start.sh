#!/bin/sh
# Starts Redis for Holdfast: one user, who reaches Holdfast's keys and channels only and none of the commands that read or change
# the server. Arguments go to redis-server.
#
#   REDIS_PASSWORD         password of the user `holdfast`
#   REDIS_ADMIN_PASSWORD   password of a user `admin` who may do everything; without it there is none
set -eu
: "${REDIS_PASSWORD:?}"

# Only hashes are written down.
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

# Nothing of worth is kept here: jobs that are lost are sent again. What is in flight must not be evicted. Protected mode is
# for servers without users.
exec redis-server --aclfile "$users" --protected-mode no --save '' --appendonly no --maxmemory-policy noeviction "$@"
