import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { JobQueueView } from '../../shared/jobs/job-queue-view.ts';
import { ForbiddenError, NotFoundError, UnauthenticatedError } from '../../shared/platform/errors/errors.ts';
import type { Authenticator } from '../identity/credentials/authenticator.ts';
import { pagePolicy } from '../platform/http/security-headers.ts';
import { queueStyleSha256, renderQueuePage } from './job-queues-page.ts';

export interface Services {
  readonly credentials: Authenticator;
}

const nowhere = { organization: null, project: null, stack: null };
/** Jobs shown per state. */
const maxJobs = 50;

/**
 * Shows the queues to site admins: as a page, or as JSON if the client accepts it. Uses HTTP Basic, so that a browser needs no login page:
 * the password is an API token; the user name is ignored. Not available through a proxy, because no ingress can block every spelling of a
 * path.
 */
export function registerQueueRoutes(app: FastifyInstance, services: Services, jobQueueView: JobQueueView): void {
  app.get(
    '/admin/queues',
    {
      onRequest: (request, reply) => admitSiteAdmin(services, request, reply),
      config: {
        rate: 'held',
        described: {
          responses: { 200: Type.Unknown() },
          produces: ['text/html', 'application/json'],
          errorStatuses: [401, 403, 404],
        },
      },
      schema: {
        security: [{ adminToken: [] }],
        summary: 'Show queues and their jobs to site admins (HTTP Basic, with an API token as the password)',
        tags: ['health'],
      },
    },
    async (request, reply) => {
      const overview = await jobQueueView.overview(maxJobs);
      if (request.headers.accept?.includes('application/json')) return reply.send(overview);
      return reply
        .header('content-security-policy', pagePolicy(queueStyleSha256))
        .type('text/html; charset=utf-8')
        .send(renderQueuePage(overview, new Date()));
    },
  );
}

async function admitSiteAdmin({ credentials }: Services, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (request.headers['x-forwarded-for'] !== undefined || request.headers['forwarded'] !== undefined)
    throw new NotFoundError('The queues are not shown through a proxy: use the URL of the API itself, or /~/operator');
  const token = basicPassword(request.headers.authorization ?? '');
  const caller = token === null ? null : await credentials.findCaller(request.raw, token, nowhere);
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
