import { Type } from 'typebox';
import { seenByHeader, tagOf } from '../platform/edits/revisions.ts';
import { apiToken } from '../platform/http/paths.ts';
import type { RouteScope } from '../platform/http/route-scope.ts';
import { OrganizationParams } from '../platform/protocol/core.ts';
import { IfMatchHeaders } from '../platform/protocol/edits.ts';
import { AccessPolicy, ChangeAccessPolicyRequest } from './access-policy.schemas.ts';
import { type AccessPolicyService, revisionOfPolicy } from './access-policy-service.ts';

export interface Services {
  readonly accessPolicy: AccessPolicyService;
}

const tags = ['access'];
const path = '/api/orgs/:organization/access-policy';
const manage = { kind: 'organization', permission: 'manage' } as const;

export function registerAccessPolicyRoutes(app: RouteScope, { accessPolicy }: Services): void {
  app.get(
    path,
    {
      config: { access: manage, rate: 'held' },
      schema: {
        tags,
        summary: 'Show the organization’s settings for its roles',
        security: apiToken,
        params: OrganizationParams,
        response: { 200: AccessPolicy },
      },
    },
    async ({ params }, reply) => {
      const policy = await accessPolicy.get(params.organization);
      void reply.header('etag', tagOf(revisionOfPolicy(policy)));
      return policy;
    },
  );
  app.patch(
    path,
    {
      config: { access: manage, rate: 'held', audit: 'grant.defaults', described: { errorStatuses: [412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: 'Change the permissions of roles below admin',
        description: 'Omitted fields stay unchanged. Running updates that are no longer permitted lose their lock.',
        security: apiToken,
        params: OrganizationParams,
        body: ChangeAccessPolicyRequest,
        response: { 204: Type.Null() },
      },
    },
    async ({ params, body, caller, audit, headers }, reply) => {
      await accessPolicy.change(caller, params.organization, body, audit, seenByHeader(headers['if-match']));
      return reply.code(204).send(null);
    },
  );
}
