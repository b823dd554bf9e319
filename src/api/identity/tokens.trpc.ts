import { Type } from 'typebox';
import { writeScope } from '../../shared/identity/token-scopes.ts';
import { decodeCursor, defaultPage, encodeCursor, Id, input, Name, page, text } from '../access/procedures/inputs.ts';
import {
  organizationMutation,
  organizationProcedure,
  router,
  userMutation,
  userProcedure,
} from '../access/procedures/trpc.ts';
import type {
  CreatedToken,
  ListedTokenRow,
  RotatedToken,
  TokenOwnerRef,
  TokenRequest,
  TokenService,
} from './token-service.ts';
import { maxOverlapSeconds } from './tokens.schemas.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly tokens: TokenService;
  }
}

const CursorFields = Type.Tuple([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Id]);
const maxScopes = 50;
const maxPermissions = 20;

const own = {
  name: Type.Optional(text(100)),
  description: Type.Optional(text(1_024)),
  /** Seconds since 1970; missing: never. */
  expires: Type.Optional(Type.Integer({ minimum: 0, maximum: 253_402_300_799 })),
  /** Missing: all permissions of its owner. */
  scopes: Type.Optional(
    Type.Array(Type.Object({ permissions: Type.Array(text(40), { maxItems: maxPermissions }), stacks: text(300) }), {
      maxItems: maxScopes,
    }),
  ),
};
const chosen = { id: Id };
/** With the time for which the previous secret stays valid. */
const rotated = { ...chosen, overlapSeconds: Type.Integer({ minimum: 0, maximum: maxOverlapSeconds }) };
const list = { withCiTokens: Type.Optional(Type.Boolean()), ...page };
const ofCaller: TokenOwnerRef = { of: 'caller' };

/** Only the response that creates a token contains its value. */
export const tokensRouter = router({
  mine: userProcedure
    .input(input(Type.Object(page)))
    .query(async ({ ctx: { caller, services }, input: query }) =>
      toPage(await services.tokens.listPage(caller, ofCaller, selectionOf(query))),
    ),
  createMine: userMutation('token.create')
    .input(input(Type.Object(own)))
    .mutation(async ({ ctx: { audit, caller, services }, input: request }) =>
      toMade(await services.tokens.make(caller, ofCaller, requestOf(request), audit)),
    ),
  revokeMine: userMutation('token.revoke')
    .input(input(Type.Object(chosen)))
    .mutation(async ({ ctx: { audit, caller, services }, input: { id } }) => {
      await services.tokens.revoke(caller, ofCaller, id, audit);
    }),

  rotateMine: userMutation('token.rotate')
    .input(input(Type.Object(rotated)))
    .mutation(async ({ ctx: { audit, caller, services }, input: how }) =>
      toRotated(await services.tokens.rotate(caller, ofCaller, how, audit)),
    ),
  lifeOfMine: userProcedure.query(async ({ ctx: { caller, services } }) => ({
    maxSeconds: await services.tokens.findMaxSeconds(caller, ofCaller),
  })),

  /** With `withCiTokens`, also tokens of CI runs. */
  list: organizationProcedure('manage')
    .input(input(Type.Object(list)))
    .query(async ({ ctx: { caller, services }, input: { organization, ...query } }) =>
      toPage(await services.tokens.listPage(caller, { of: 'organization', organization }, selectionOf(query))),
    ),
  create: organizationMutation('manage', 'token.create')
    .input(
      input(
        Type.Object({
          ...own,
          name: text(100),
          /** `service`: the token's scopes and grants decide. */
          power: Type.Union([Type.Literal('admin'), Type.Literal('member'), Type.Literal('service')]),
        }),
      ),
    )
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, power, ...given } }) => {
      const request = { ...requestOf(given), admin: power === 'admin', service: power === 'service' };
      return toMade(await services.tokens.make(caller, { of: 'organization', organization }, request, audit));
    }),
  revoke: organizationMutation('manage', 'token.revoke')
    .input(input(Type.Object(chosen)))
    .mutation(async ({ ctx: { audit, caller, services }, input: { id, organization } }) => {
      await services.tokens.revoke(caller, { of: 'organization', organization }, id, audit);
    }),
  rotate: organizationMutation('manage', 'token.rotate')
    .input(input(Type.Object(rotated)))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, ...how } }) =>
      toRotated(await services.tokens.rotate(caller, { of: 'organization', organization }, how, audit)),
    ),
  life: organizationProcedure('manage').query(async ({ ctx: { caller, services }, input: { organization } }) => ({
    maxSeconds: await services.tokens.findMaxSeconds(caller, { of: 'organization', organization }),
  })),

  /** Admins of the team may call it, too: the service checks, here and below. */
  ofTeam: organizationProcedure('read')
    .input(input(Type.Object({ team: Name, ...list })))
    .query(async ({ ctx: { caller, services }, input: { organization, team, ...query } }) =>
      toPage(await services.tokens.listPage(caller, { of: 'team', organization, team }, selectionOf(query))),
    ),
  createOfTeam: organizationMutation('read', 'token.create')
    .input(input(Type.Object({ ...own, team: Name, name: text(100) })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, team, ...given } }) =>
      toMade(await services.tokens.make(caller, { of: 'team', organization, team }, requestOf(given), audit)),
    ),
  revokeOfTeam: organizationMutation('read', 'token.revoke')
    .input(input(Type.Object({ ...chosen, team: Name })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { id, organization, team } }) => {
      await services.tokens.revoke(caller, { of: 'team', organization, team }, id, audit);
    }),
  rotateOfTeam: organizationMutation('read', 'token.rotate')
    .input(input(Type.Object({ ...rotated, team: Name })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, team, ...how } }) =>
      toRotated(await services.tokens.rotate(caller, { of: 'team', organization, team }, how, audit)),
    ),
  lifeOfTeam: organizationProcedure('read')
    .input(input(Type.Object({ team: Name })))
    .query(async ({ ctx: { caller, services }, input: { organization, team } }) => ({
      maxSeconds: await services.tokens.findMaxSeconds(caller, { of: 'team', organization, team }),
    })),
});

function selectionOf(query: {
  readonly cursor?: string | null;
  readonly limit?: number;
  readonly withCiTokens?: boolean;
}) {
  const position = decodeCursor(query.cursor, CursorFields);
  const after = position && { micros: position[0], id: position[1] };
  return { after, limit: query.limit ?? defaultPage, withCiTokens: query.withCiTokens ?? false };
}

function requestOf(given: {
  readonly name?: string;
  readonly description?: string;
  readonly expires?: number;
  readonly scopes?: TokenRequest['scopes'];
}): TokenRequest {
  const { description = '', expires = null, name, scopes = null } = given;
  return { name: name || null, description, expires, scopes, admin: false, service: false };
}

function toMade({ expiresAt, id, token }: CreatedToken) {
  return { id, value: token, expiresAt: expiresAt?.toISOString() ?? null };
}

function toRotated({ previousUntil, ...made }: RotatedToken) {
  return { ...toMade(made), previousUntil: previousUntil?.toISOString() ?? null };
}

function toPage({ next, tokens }: { tokens: readonly ListedTokenRow[]; next: { micros: number; id: string } | null }) {
  const items = tokens.map((token) => ({
    id: token.id,
    kind: token.kind,
    name: token.name,
    description: token.description,
    role: token.role,
    scopes: token.scopes?.map(writeScope) ?? null,
    isProvisioning: token.isProvisioning,
    isCiToken: token.isCiToken,
    /** False for tokens of CI runs, tokens of identity providers, and tokens from the bootstrap file. */
    mayRotate: !token.isCiToken && !token.isProvisioning && !token.isListed,
    /** When the secret from before the last rotation expires. */
    previousUntil: token.previousUntil?.toISOString() ?? null,
    createdAt: token.createdAt.toISOString(),
    createdBy: token.createdBy,
    expiresAt: token.expiresAt?.toISOString() ?? null,
    lastUsedAt: token.lastUsedAt?.toISOString() ?? null,
  }));
  return { items, next: next && encodeCursor([next.micros, next.id]) };
}
