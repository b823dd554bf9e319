import { Type } from 'typebox';
import { writePolicy } from '../../shared/identity/trust/trust-definitions.ts';
import { seenByHeader, tagOf } from '../platform/edits/revisions.ts';
import { apiToken } from '../platform/http/paths.ts';
import { isPulumiProvider } from '../platform/http/pulumi-provider.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams } from '../platform/protocol/core.ts';
import { IfMatchHeaders } from '../platform/protocol/edits.ts';
import type { IssuerService } from './issuer-service.ts';
import { type IssuerPolicies, type IssuerRow, revisionOfIssuer, revisionOfPolicies } from './issuer-service.ts';
import {
  IssuerParams,
  IssuerResponse,
  ListIssuersResponse,
  PoliciesParams,
  PoliciesRequest,
  PoliciesResponse,
  RegisterIssuerRequest,
  UpdateIssuerRequest,
} from './issuers.schemas.ts';

export interface Services {
  readonly issuers: IssuerService;
}

const tags = ['issuers'];
const path = '/api/orgs/:organization/oidc/issuers';
const policiesPath = '/api/orgs/:organization/auth/policies';
const access = { kind: 'organization', permission: 'manage' } as const;

/** The format is Pulumi Cloud's. The policies of an issuer have its id. */
export function registerIssuerRoutes(app: RouteScope, services: Services): void {
  listIssuers(app, services);
  registerIssuer(app, services);
  getIssuer(app, services);
  updateIssuer(app, services);
  deleteIssuer(app, services);
  getPolicies(app, services);
  updatePolicies(app, services);
}

function listIssuers(app: RouteScope, { issuers }: Services): void {
  app.get(
    path,
    {
      config: { access, rate: 'held' },
      schema: {
        tags,
        summary: 'List the issuers of id tokens that an organization trusts',
        security: apiToken,
        params: OrganizationParams,
        response: { 200: ListIssuersResponse },
      },
    },
    async ({ params }) => ({ oidcIssuers: (await issuers.list(params.organization)).map(toResponse) }),
  );
}

function registerIssuer(app: RouteScope, { issuers }: Services): void {
  app.post(
    path,
    {
      config: { access, rate: 'held', audit: 'issuer.add', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Trust an issuer of id tokens',
        security: apiToken,
        params: OrganizationParams,
        body: RegisterIssuerRequest,
        response: { 200: IssuerResponse },
      },
    },
    async ({ audit, body, caller, params }) =>
      toResponse(await issuers.register(caller, params.organization, body, audit)),
  );
}

function getIssuer(app: RouteScope, { issuers }: Services): void {
  app.get(
    `${path}/:issuerId`,
    {
      config: { access, rate: 'held' },
      schema: {
        tags,
        summary: 'Get an issuer',
        security: apiToken,
        params: IssuerParams,
        response: { 200: IssuerResponse },
      },
    },
    async ({ params }, reply) => {
      const issuer = await issuers.get(params.organization, params.issuerId);
      void reply.header('etag', tagOf(revisionOfIssuer(issuer)));
      return toResponse(issuer);
    },
  );
}

function updateIssuer(app: RouteScope, { issuers }: Services): void {
  app.patch(
    `${path}/:issuerId`,
    {
      config: { access, rate: 'held', audit: 'issuer.change', described: { errorStatuses: [409, 412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: 'Change an issuer',
        security: apiToken,
        params: IssuerParams,
        body: UpdateIssuerRequest,
        response: { 200: IssuerResponse },
      },
    },
    async ({ audit, body, caller, headers, params }, reply) => {
      const seen = seenByHeader(headers['if-match']);
      const issuer = await issuers.update(caller, params.organization, params.issuerId, body, audit, seen);
      void reply.header('etag', tagOf(revisionOfIssuer(issuer)));
      return toResponse(issuer);
    },
  );
}

function deleteIssuer(app: RouteScope, { issuers }: Services): void {
  app.delete(
    `${path}/:issuerId`,
    {
      config: { access, rate: 'held', audit: 'issuer.remove', described: { errorStatuses: [412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: 'End the trust in an issuer, and the tokens issued for it',
        security: apiToken,
        params: IssuerParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, headers, params }, reply) => {
      const seen = seenByHeader(headers['if-match']);
      await issuers.remove(caller, params.organization, params.issuerId, audit, seen);
      return reply.code(204).send(null);
    },
  );
}

function getPolicies(app: RouteScope, { issuers }: Services): void {
  app.get(
    `${policiesPath}/oidcissuers/:issuerId`,
    {
      config: { access, rate: 'held', described: { errorStatuses: [409] } },
      schema: {
        tags,
        summary: 'Get the policies of an issuer',
        security: apiToken,
        params: IssuerParams,
        response: { 200: PoliciesResponse },
      },
    },
    async (request, reply) => {
      const { organization, issuerId } = request.params;
      const policies = await (isPulumiProvider(request)
        ? issuers.getSplitPolicies(organization, issuerId)
        : issuers.getPolicies(organization, issuerId));
      void reply.header('etag', tagOf(revisionOfPolicies(policies.issuer)));
      return toPolicies(policies);
    },
  );
}

function updatePolicies(app: RouteScope, { issuers }: Services): void {
  app.patch(
    `${policiesPath}/:policyId`,
    {
      config: { access, rate: 'held', audit: 'issuer.policies', described: { errorStatuses: [412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: 'Replace the policies of an issuer',
        security: apiToken,
        params: PoliciesParams,
        body: PoliciesRequest,
        response: { 200: PoliciesResponse },
      },
    },
    async (request, reply) => {
      const { audit, body, caller, headers, params } = request;
      const { organization, policyId } = params;
      const seen = seenByHeader(headers['if-match']);
      const isSplit = isPulumiProvider(request);
      const policies = await issuers.setPolicies(caller, organization, policyId, body.policies, audit, {
        isSplit,
        seen,
      });
      void reply.header('etag', tagOf(revisionOfPolicies(policies.issuer)));
      return toPolicies(policies);
    },
  );
}

function toResponse(issuer: IssuerRow) {
  const { audience, createdAt, id, jwks, maxSeconds, modifiedAt, name, replay, url } = issuer;
  return {
    ...{ id, name, url, issuer: url, audience, replay, thumbprints: [] },
    ...(maxSeconds === null ? {} : { maxExpiration: maxSeconds }),
    ...(jwks === null ? {} : { jwks: JSON.parse(jwks) as { keys: unknown[] } }),
    ...{ created: createdAt.toISOString(), modified: modifiedAt.toISOString() },
  };
}

function toPolicies({ issuer, policies }: IssuerPolicies) {
  return {
    id: issuer.id,
    version: issuer.policyVersion,
    created: issuer.createdAt.toISOString(),
    modified: issuer.modifiedAt.toISOString(),
    policies: policies.map((policy) => ({ id: policy.id, ...writePolicy(policy) })),
  };
}
