import { stat } from 'node:fs/promises';
import path from 'node:path';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { html } from '../pages/html.ts';
import { pageHeaders, renderPage } from '../pages/page.ts';
import { wantsPage } from '../pages/wants-page.ts';

/** Files with a hash in their names: they never change. */
const hashed = /^\/assets\/[\w.-]+\.(?:js|css|svg|png|woff2)$/;
/** Files that change with a release. */
const named = /^\/(?:fonts\/[\w.-]+\.woff2|theme\.js|mark\.svg)$/;
/** Paths for programs and operators. A wrong path of these gives the same error in a browser as to a program. */
const notPages = /^\/(?:api|trpc|scim|policy-packs|admin|assets|fonts|healthz|readyz|metrics)(?:\/|$)/;

const yearMs = 365 * 24 * 60 * 60 * 1000;
const dayMs = 24 * 60 * 60 * 1000;
/** For the page that says that the web UI is not there yet. */
const retrySeconds = 5;

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
 * Serves the web UI where no route answers: its files, and its page for every other path that a browser asks for, because the page
 * handles its own routes. Other requests remain unanswered. `folder`: where the build is; it may appear or be replaced at any time.
 */
export async function registerWebAssets(app: FastifyInstance, folder: string): Promise<void> {
  await app.register(fastifyStatic, { root: folder, serve: false, preCompressed: true, suppressWarning: true });
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404 || (request.method !== 'GET' && request.method !== 'HEAD')) return undefined;
    const url = request.url.split('?')[0] ?? '';
    const isHashed = hashed.test(url);
    if (isHashed || named.test(url)) {
      if (!(await exists(folder, url))) return undefined;
      const caching = isHashed ? { immutable: true, maxAge: yearMs } : { maxAge: dayMs };
      return allowCaching(reply).sendFile(url.slice(1), caching);
    }
    if (!wantsPage(request) || notPages.test(url)) return undefined;
    if (!(await exists(folder, 'index.html'))) return sendMissing(reply);
    return reply
      .headers({ 'cache-control': 'no-cache', 'content-security-policy': policy, 'referrer-policy': 'same-origin' })
      .sendFile('index.html', { cacheControl: false });
  });
}

async function exists(folder: string, name: string): Promise<boolean> {
  return stat(path.join(folder, name)).then(
    (found) => found.isFile(),
    () => false,
  );
}

/** Responses are not stored by default; here the file decides. */
function allowCaching(reply: FastifyReply): FastifyReply {
  return reply.removeHeader('cache-control');
}

/** The web UI is not part of this installation, or `npm start` is building it. */
function sendMissing(reply: FastifyReply): FastifyReply {
  const body = html`<p>The server is running, but its web UI has not been built yet. After <code>npm start</code> this takes a moment; otherwise, <code>npm run build:web</code> builds it.</p>
<p>The Pulumi CLI works without it. <a href="/account">Your account</a></p>`;
  return reply
    .code(503)
    .headers({ ...pageHeaders(), 'retry-after': String(retrySeconds), refresh: String(retrySeconds) })
    .type('text/html; charset=utf-8')
    .send(renderPage('One moment', body));
}
