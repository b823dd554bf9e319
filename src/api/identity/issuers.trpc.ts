import { Type } from 'typebox';
import { maxLifeSeconds, type WrittenPolicy, writePolicy } from '../../shared/identity/trust/trust-definitions.ts';
import {
  decodeCursor,
  defaultPage,
  encodeCursor,
  Id,
  input,
  Name,
  page,
  Revision,
  text,
} from '../access/procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router } from '../access/procedures/trpc.ts';
import { seenByField } from '../platform/edits/revisions.ts';
import { type IssuerPolicies, type IssuerRow, type IssuerService, revisionOfIssuer } from './issuer-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly issuers: IssuerService;
  }
}

const LastName = Type.Tuple([Name]);
const Seconds = Type.Union([Type.Integer({ minimum: 0, maximum: maxLifeSeconds }), Type.Null()]);
const maxPolicies = 100;
const maxRules = 20;
const maxPatterns = 50;
const maxScopes = 50;

const chosen = { id: Id };
const settings = {
  audience: Type.Optional(text(500)),
  replay: Type.Optional(Type.Union([Type.Literal('once'), Type.Literal('within-life')])),
  /** Maximum lifetime of issued tokens; null: two hours. */
  maxSeconds: Type.Optional(Seconds),
};

const Policy = Type.Object({
  decision: Type.Union([Type.Literal('allow'), Type.Literal('deny')]),
  /** organization, team, personal or service; `any` in a policy that denies. */
  tokenType: text(40),
  /** A team, or a login. */
  owner: Type.Optional(Name),
  isAdmin: Type.Optional(Type.Boolean()),
  rules: Type.Array(Type.Object({ claim: text(500), patterns: Type.Array(text(500), { maxItems: maxPatterns }) }), {
    maxItems: maxRules,
  }),
  scopes: Type.Optional(
    Type.Array(Type.Object({ permissions: Type.Array(text(40), { maxItems: 20 }), stacks: text(300) }), {
      maxItems: maxScopes,
    }),
  ),
  maxSeconds: Type.Optional(Seconds),
});
type Policy = Type.Static<typeof Policy>;

export const issuersRouter = router({
  /** In the order of their names. */
  list: organizationProcedure('manage')
    .input(input(Type.Object(page)))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage, organization } }) => {
      const [after] = decodeCursor(cursor, LastName) ?? [null];
      const { issuers, next } = await services.issuers.listPage(organization, after, limit);
      const items = issuers.map(({ policies, ...issuer }) => ({ ...toIssuer(issuer), policies }));
      return { items, next: next === null ? null : encodeCursor([next]) };
    }),

  get: organizationProcedure('manage')
    .input(input(Type.Object(chosen)))
    .query(async ({ ctx: { services }, input: { id, organization } }) =>
      toPolicies(await services.issuers.getPolicies(organization, id)),
    ),

  create: organizationMutation('manage', 'issuer.add')
    .input(input(Type.Object({ name: Name, url: text(500), ...settings })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { maxSeconds, organization, ...issuer } }) => {
      const request = { ...issuer, ...(maxSeconds === undefined ? {} : { maxExpiration: maxSeconds }) };
      return toIssuer(await services.issuers.register(caller, organization, request, audit));
    }),

  edit: organizationMutation('manage', 'issuer.change')
    .input(input(Type.Object({ ...chosen, revision: Revision, name: Type.Optional(Name), ...settings })))
    .mutation(
      async ({ ctx: { audit, caller, services }, input: { id, maxSeconds, organization, revision, ...change } }) => {
        const request = { ...change, ...(maxSeconds === undefined ? {} : { maxExpiration: maxSeconds }) };
        return toIssuer(await services.issuers.update(caller, organization, id, request, audit, seenByField(revision)));
      },
    ),

  /** Refused if another user has changed them since the version that the caller has seen. */
  setPolicies: organizationMutation('manage', 'issuer.policies')
    .input(
      input(
        Type.Object({
          ...chosen,
          version: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
          policies: Type.Array(Policy, { maxItems: maxPolicies }),
        }),
      ),
    )
    .mutation(async ({ ctx: { audit, caller, services }, input: { id, organization, policies, version } }) =>
      toPolicies(
        await services.issuers.setPolicies(caller, organization, id, policies.map(toWritten), audit, {
          seen: [String(version)],
        }),
      ),
    ),

  delete: organizationMutation('manage', 'issuer.remove')
    .input(input(Type.Object({ ...chosen, revision: Revision })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { id, organization, revision } }) => {
      await services.issuers.remove(caller, organization, id, audit, seenByField(revision));
    }),
});

function toWritten({ decision, isAdmin, maxSeconds, owner, rules, scopes, tokenType }: Policy): WrittenPolicy {
  return {
    decision,
    tokenType,
    ...(tokenType === 'team' ? { teamName: owner ?? null } : {}),
    ...(tokenType === 'personal' ? { userLogin: owner ?? null } : {}),
    authorizedPermissions: isAdmin ? ['admin'] : [],
    rules: Object.fromEntries(rules.map(({ claim, patterns }) => [claim, patterns])),
    scopes: scopes ?? null,
    maxExpiration: maxSeconds ?? null,
  };
}

function toIssuer(row: IssuerRow) {
  const { audience, createdAt, id, jwks, maxSeconds, modifiedAt, name, replay, url } = row;
  return {
    revision: revisionOfIssuer(row),
    ...{ id, name, url, audience, replay, maxSeconds },
    /** False: the keys are fetched. */
    hasOwnKeys: jwks !== null,
    createdAt: createdAt.toISOString(),
    changedAt: modifiedAt.toISOString(),
  };
}

function toPolicies({ issuer, policies }: IssuerPolicies) {
  return {
    issuer: toIssuer(issuer),
    version: issuer.policyVersion,
    policies: policies.map((policy) => {
      const { decision, rules, scopes = null, tokenType } = writePolicy(policy);
      const { id, isAdmin, maxSeconds, owner } = policy;
      const listed = Object.entries(rules).map(([claim, patterns]) => ({ claim, patterns: [patterns].flat() }));
      return { id, decision, tokenType, owner, isAdmin, rules: listed, scopes, maxSeconds };
    }),
  };
}
