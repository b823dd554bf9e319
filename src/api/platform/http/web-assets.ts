import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { programPaths } from '../../../shared/stacks/names.ts';
import { html } from '../pages/html.ts';
import { isLinkPreview, linkCard } from '../pages/link-card.ts';
import { pageHeaders, renderPage } from '../pages/page.ts';
import { wantsPage } from '../pages/wants-page.ts';
import type { ErrorResponse } from '../protocol/errors.ts';
import { isBeingBuilt } from './web-build.ts';

/** Files with a hash in their names: they never change. */
const hashed = /^\/assets\/[\w.-]+\.(?:js|css|svg|png|woff2)$/;
/** Files that change with a release. */
const named = /^\/(?:fonts\/[\w.-]+\.woff2|theme\.js|mark\.svg)$/;
/** Paths for programs and operators. For a wrong path among them, browsers and programs get the same error. */
const notPages = new RegExp(`^/(?:${programPaths.join('|')})(?:/|$)`);

const yearMs = 365 * 24 * 60 * 60 * 1000;
const dayMs = 24 * 60 * 60 * 1000;
const retrySeconds = 5;
/** All files of a package have the same time, so files of two releases may agree in size and time. */
const unvalidated = { etag: false, lastModified: false };

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * Serves the web UI where no route answers: its files, its page at `/` and for every other path that a browser asks for, because the page
 * handles its own routes. `folder`: the build, which may appear or be replaced at any time.
 */
export async function registerWebAssets(app: FastifyInstance, folder: string): Promise<void> {
  await app.register(fastifyStatic, { root: folder, serve: false, preCompressed: true, suppressWarning: true });
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404 || (request.method !== 'GET' && request.method !== 'HEAD')) return undefined;
    const url = request.url.split(/[?#]/)[0] ?? '';
    const isHashed = hashed.test(url);
    if (isHashed || named.test(url)) {
      if (!(await exists(folder, url))) return undefined;
      const caching = isHashed ? { immutable: true, maxAge: yearMs } : { ...unvalidated, maxAge: dayMs };
      return allowCaching(reply).sendFile(url.slice(1), caching);
    }
    const isForPage = wantsPage(request) || isLinkPreview(request.headers['user-agent']);
    if (url !== '/' && (!isForPage || notPages.test(url))) return undefined;
    if (!(await exists(folder, 'index.html'))) return sendMissing(request, reply, await isBeingBuilt(folder));
    void reply.headers({
      'cache-control': 'no-cache',
      'content-security-policy': policy,
      'referrer-policy': 'same-origin',
    });
    const card = linkCard(url);
    if (card !== null) {
      const page = await readFile(path.join(folder, 'index.html'), 'utf8');
      return reply.type('text/html; charset=utf-8').send(page.replace('</head>', () => `${card.text}</head>`));
    }
    return reply.sendFile('index.html', { ...unvalidated, cacheControl: false });
  });
}

async function exists(folder: string, name: string): Promise<boolean> {
  return stat(path.join(folder, name)).then(
    (found) => found.isFile(),
    () => false,
  );
}

/** By default, responses are not stored; here, the file decides. */
function allowCaching(reply: FastifyReply): FastifyReply {
  return reply.removeHeader('cache-control');
}

/** A page for a browser, which reloads it while the web UI is being built; JSON for other clients. */
function sendMissing(request: FastifyRequest, reply: FastifyReply, isBuilding: boolean): FastifyReply {
  const status = isBuilding ? 503 : 404;
  void reply.code(status);
  if (isBuilding) void reply.header('retry-after', String(retrySeconds));
  const message = isBuilding
    ? 'The web UI is being built. The server is running; the Pulumi CLI works meanwhile.'
    : 'The web UI is not part of this installation. The Pulumi CLI works without it.';
  if (!wantsPage(request)) {
    const body: ErrorResponse = { code: status, message };
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
  }
  if (isBuilding) void reply.header('refresh', String(retrySeconds));
  const remedy = isBuilding ? html`` : html`<p>In a checkout, <code>npm run build:web</code> builds it.</p>`;
  return reply
    .headers(pageHeaders())
    .type('text/html; charset=utf-8')
    .send(
      renderPage(
        isBuilding ? 'One moment' : 'No web UI',
        html`<p>${message}</p>
${remedy}<p><a href="/account">Your account</a></p>`,
      ),
    );
}
