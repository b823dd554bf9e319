# syntax=docker/dockerfile:1

# The same commit and base images produce the same image with
#
#   docker buildx build --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) --output type=docker,rewrite-timestamp=true .
#
# One image for every role: the role is the command (server, api, worker, migrate, create-bucket, admin …). The build runs on the
# platform of the builder: its result is the same for all. The last stage runs nothing, so that no platform needs to be emulated.

FROM --platform=$BUILDPLATFORM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json vite.config.ts ./
COPY src ./src
COPY scripts/sbom.ts scripts/build-web.ts ./scripts/
RUN node_modules/.bin/tsc -p tsconfig.build.json && node scripts/build-web.ts --if-stale && node scripts/sbom.ts sbom.cdx.json --omit=optional

# `--target web`: the web UI by itself, for the cluster.
FROM caddy:2 AS web
LABEL org.opencontainers.image.title="Holdfast web UI" \
  org.opencontainers.image.licenses="Apache-2.0"
COPY deploy/web/Caddyfile /etc/caddy/Caddyfile
COPY --from=build /app/dist/web /srv

FROM --platform=$BUILDPLATFORM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without the optional packages: they are the binaries of the embedded Postgres, and a Node like the one of the image. Types are not
# needed either, nor the compiler that tRPC wants for them.
RUN npm ci --omit=dev --omit=optional \
  && rm -rf node_modules/.bin node_modules/typescript \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.md' \) -delete
# `holdfast` is for `docker exec`.
RUN mkdir data links && ln -s /app/bin/holdfast.js links/holdfast

FROM node:24-slim
LABEL org.opencontainers.image.title="Holdfast" \
  org.opencontainers.image.description="Self-hosted state backend for the Pulumi CLI" \
  org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production \
  HOLDFAST_LISTEN=0.0.0.0:9090 \
  HOLDFAST_MANAGEMENT_LISTEN=0.0.0.0:9092 \
  HOLDFAST_DATA_DIR=/data
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/sbom.cdx.json ./
COPY package.json LICENSE ./
COPY bin ./bin
COPY migrations ./migrations
COPY --from=dependencies /app/links /usr/local/bin
# Used without S3 only.
COPY --from=dependencies --chown=node:node /app/data /data
USER node
# 9090 for clients; 9092 for metrics and health details, inside the network only.
EXPOSE 9090 9092
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --retries=10 CMD ["node", "dist/main.js", "--healthz"]
# Buffers of streamed bodies are freed when the young generation fills: with its default size, 60 MB of them pile up.
ENTRYPOINT ["node", "--enable-source-maps", "--max-semi-space-size=2", "--heap-growing-percent=50", "dist/main.js"]
CMD ["server"]
