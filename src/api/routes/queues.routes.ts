import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { QueueBoard } from '../../shared/jobs/queue-board.ts';
import { ForbiddenError, UnauthenticatedError } from '../../shared/platform/errors/errors.ts';
import { renderQueuePage } from '../admin/queue-page.ts';
import type { ApiServices } from '../api-services.ts';

/** Jobs of each state that are shown. */
const shownJobs = 50;

/**
 * The queues, for site admins: a page in a browser, JSON for those who ask for it. HTTP Basic, so that a browser can be let in
 * without a login of ours; the password is an API token, the user name does not matter.
 */
export function registerQueueRoutes(app: FastifyInstance, services: ApiServices, board: QueueBoard): void {
  app.get(
    '/admin/queues',
    {
      onRequest: (request, reply) => admitSiteAdmin(services, request, reply),
      config: {
        described: {
          answers: { 200: Type.Unknown() },
          produces: ['text/html', 'application/json'],
          refusals: [401, 403],
        },
      },
      schema: {
        security: [{ adminToken: [] }],
        summary: 'Queues and their jobs, for site admins (HTTP Basic, password: an API token)',
        tags: ['health'],
      },
    },
    async (request, reply) => {
      const overview = await board.overview(shownJobs);
      void reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff');
      if (request.headers.accept?.includes('application/json')) return reply.send(overview);
      return reply
        .header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
        .type('text/html; charset=utf-8')
        .send(renderQueuePage(overview, new Date()));
    },
  );
}

async function admitSiteAdmin(
  { credentials }: ApiServices,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const token = basicPassword(request.headers.authorization ?? '');
  const caller = token === null ? null : await credentials.findCaller(request.raw, token, null);
  if (!caller) {
    void reply.header('www-authenticate', 'Basic realm="Holdfast", charset="UTF-8"');
    throw new UnauthenticatedError('Log in with an API token of a site admin as the password');
  }
  if (!caller.siteAdmin) throw new ForbiddenError('Only site admins may see the queues');
}

function basicPassword(header: string): string | null {
  const encoded = /^basic ([a-z0-9+/=]+)$/i.exec(header)?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 || colon === text.length - 1 ? null : text.slice(colon + 1);
}
