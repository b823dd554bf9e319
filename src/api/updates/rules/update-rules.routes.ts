import { Type } from 'typebox';
import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import { parseRule } from '../../../shared/updates/rules/update-rules.ts';
import { seenByHeader, tagOf } from '../../platform/edits/revisions.ts';
import { apiToken } from '../../platform/http/paths.ts';
import type { RouteScope } from '../../platform/http/route-scope.ts';
import { OrganizationParams } from '../../platform/protocol/core.ts';
import { IfMatchHeaders } from '../../platform/protocol/edits.ts';
import type { RuleQueries } from './rule-queries.ts';
import { type RuleRow, revisionOfRule, type UpdateRuleService } from './update-rule-service.ts';
import {
  EstimateUpdateRuleQuery,
  EstimateUpdateRuleResponse,
  ListUpdateRulesResponse,
  SetUpdateRuleRequest,
  UpdateRuleParams,
  UpdateRuleResponse,
} from './update-rules.schemas.ts';

export interface Services {
  readonly ruleQueries: Pick<RuleQueries, 'estimate'>;
  readonly updateRules: UpdateRuleService;
}

const tags = ['update-rules'];
const path = '/api/orgs/:organization/update-rules';
const access = { kind: 'organization', permission: 'manage' } as const;

export function registerUpdateRuleRoutes(app: RouteScope, services: Services): void {
  listRules(app, services);
  setRule(app, services);
  estimateRule(app, services);
  getRule(app, services);
  changeRule(app, services);
  deleteRule(app, services);
}

function listRules(app: RouteScope, { updateRules }: Services): void {
  app.get(
    path,
    {
      config: { access, rate: 'held' },
      schema: {
        tags,
        summary: 'List the rules for updates of an organization',
        security: apiToken,
        params: OrganizationParams,
        response: { 200: ListUpdateRulesResponse },
      },
    },
    async ({ params }) => ({ rules: (await updateRules.list(params.organization)).map(toResponse) }),
  );
}

function setRule(app: RouteScope, { updateRules }: Services): void {
  app.post(
    path,
    {
      config: { access, rate: 'held', audit: 'update-rule.set' },
      schema: {
        tags,
        summary: 'Set a rule for updates',
        description:
          'Replaces the rule of this kind for the same stacks. A rule of kind `freeze` is added to the others, unless the call repeats one of the same user within a minute.',
        security: apiToken,
        params: OrganizationParams,
        body: SetUpdateRuleRequest,
        response: { 200: UpdateRuleResponse },
      },
    },
    async ({ audit, body, caller, params }) =>
      toResponse(await updateRules.set(caller, params.organization, parseRule(body), audit)),
  );
}

function estimateRule(app: RouteScope, { ruleQueries }: Services): void {
  app.get(
    `${path}/estimate`,
    {
      config: { access, rate: 'held' },
      schema: {
        tags,
        summary: 'Count what a rule about retention would delete',
        description: 'Changes nothing. Only for the kinds `keep-versions`, `keep-events` and `keep-previews`.',
        security: apiToken,
        params: OrganizationParams,
        querystring: EstimateUpdateRuleQuery,
        response: { 200: EstimateUpdateRuleResponse },
      },
    },
    async ({ caller, params, query }) => {
      const estimate = await ruleQueries.estimate(caller, params.organization, parseRule(readQuery(query)), null);
      if (estimate === null) throw new InvalidRequestError(`A rule ${JSON.stringify(query.kind)} deletes nothing`);
      return { ...estimate, stacks: [...estimate.stacks] };
    },
  );
}

function readQuery({ settings, tagName, tagValue = '', ...query }: EstimateUpdateRuleQuery) {
  const tag = tagName === undefined ? null : { name: tagName, value: tagValue };
  try {
    return { ...query, tag, settings: JSON.parse(settings) as unknown };
  } catch (cause) {
    throw new InvalidRequestError('settings is not JSON', { cause });
  }
}

function getRule(app: RouteScope, { updateRules }: Services): void {
  app.get(
    `${path}/:ruleId`,
    {
      config: { access, rate: 'held' },
      schema: {
        tags,
        summary: 'Get a rule for updates',
        security: apiToken,
        params: UpdateRuleParams,
        response: { 200: UpdateRuleResponse },
      },
    },
    async ({ params }, reply) => {
      const rule = await updateRules.get(params.organization, params.ruleId);
      void reply.header('etag', tagOf(revisionOfRule(rule)));
      return toResponse(rule);
    },
  );
}

function changeRule(app: RouteScope, { updateRules }: Services): void {
  app.put(
    `${path}/:ruleId`,
    {
      config: { access, rate: 'held', audit: 'update-rule.set', described: { errorStatuses: [409, 412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: 'Change a rule for updates',
        description:
          'Replaces its stacks, settings and note. Its kind stays. The rule is in force without interruption.',
        security: apiToken,
        params: UpdateRuleParams,
        body: SetUpdateRuleRequest,
        response: { 200: UpdateRuleResponse },
      },
    },
    async ({ audit, body, caller, headers, params }, reply) => {
      const { organization, ruleId } = params;
      const seen = seenByHeader(headers['if-match']);
      const rule = await updateRules.change(caller, organization, ruleId, parseRule(body), audit, seen);
      void reply.header('etag', tagOf(revisionOfRule(rule)));
      return toResponse(rule);
    },
  );
}

function deleteRule(app: RouteScope, { updateRules }: Services): void {
  app.delete(
    `${path}/:ruleId`,
    {
      config: { access, rate: 'held', audit: 'update-rule.remove', described: { errorStatuses: [412] } },
      schema: {
        tags,
        headers: IfMatchHeaders,
        summary: 'Delete a rule for updates',
        security: apiToken,
        params: UpdateRuleParams,
        response: { 204: Type.Null() },
      },
    },
    async ({ audit, caller, headers, params }, reply) => {
      const seen = seenByHeader(headers['if-match']);
      await updateRules.remove(caller, params.organization, params.ruleId, audit, seen);
      return reply.code(204).send(null);
    },
  );
}

function toResponse({ id, kind, note, project, setAt, setBy, settings, stack, tagName, tagValue }: RuleRow) {
  return {
    ...{ id, kind, note, setAt: setAt.toISOString(), settings: JSON.parse(settings) as Record<string, unknown> },
    ...(project === null ? {} : { project }),
    ...(stack === null ? {} : { stack }),
    ...(tagName === null || tagValue === null ? {} : { tag: { name: tagName, value: tagValue } }),
    ...(setBy === null ? {} : { setBy }),
  };
}
