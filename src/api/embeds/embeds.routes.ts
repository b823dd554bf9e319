import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { RouteScope } from '../platform/http/route-scope.ts';
import type { EmbedService, RenderedEmbed } from './embed-service.ts';

export interface Services {
  readonly embeds: EmbedService;
}

const tags = ['embeds'];
/** The token is in the query, which none of our logs contains. */
const Query = Type.Object({ token: Type.Optional(Type.String({ maxLength: 200 })) });
const described = (mediaType: string) => ({
  responses: { 200: Type.String(), 404: Type.String() },
  produces: [mediaType],
});

/** Readers need only the address. An address that shows nothing always gets the same response. */
export function registerEmbedRoutes(app: RouteScope, { embeds }: Services): void {
  app.get(
    '/api/embeds/badge.svg',
    {
      config: { access: { kind: 'public' }, rate: 'held', anyAccept: true, described: described('image/svg+xml') },
      schema: { tags, summary: 'Show the status of a stack as a badge', querystring: Query },
    },
    async (request, reply) => {
      // Pages of other sites may show the badge.
      void reply.header('cross-origin-resource-policy', 'cross-origin');
      const shown = await embeds.showBadge(request.query.token ?? '');
      return send(request, reply, shown, { caching: 'public, max-age=60', mediaType: 'image/svg+xml' });
    },
  );

  app.get(
    '/api/embeds/updates.atom',
    {
      config: {
        access: { kind: 'public' },
        rate: 'held',
        anyAccept: true,
        described: described('application/atom+xml'),
      },
      schema: { tags, summary: 'List the last updates of a stack or an organization as a feed', querystring: Query },
    },
    async (request, reply) => {
      const shown = await embeds.showFeed(request.query.token ?? '');
      return send(request, reply, shown, { caching: 'private, max-age=60', mediaType: 'application/atom+xml' });
    },
  );
}

/** Sends 304 if the reader already has the text. */
function send(
  request: FastifyRequest,
  reply: FastifyReply,
  { isFound, text }: RenderedEmbed,
  { caching, mediaType }: { readonly caching: string; readonly mediaType: string },
): FastifyReply {
  // Weak, because the bytes may be compressed on their way.
  const tag = `W/"${createHash('sha256').update(text).digest('base64url')}"`;
  void reply.headers({ 'cache-control': caching, etag: tag });
  const known = (request.headers['if-none-match'] ?? '').split(',').map((each) => each.trim());
  if (isFound && known.includes(tag)) return reply.code(304).send();
  return reply
    .code(isFound ? 200 : 404)
    .type(`${mediaType}; charset=utf-8`)
    .send(text);
}
