import { Type } from 'typebox';
import { ConfigurationError } from '../configuration-error.ts';
import { type Kind, type PresentObject, part, type Spec, sorted } from './kind.ts';

const closed = { additionalProperties: false } as const;
const Names = Type.Array(Type.String(), { maxItems: 200 });

interface HookResponse {
  readonly name: string;
  readonly displayName: string;
  readonly payloadUrl: string;
  readonly active: boolean;
  readonly format: string;
  readonly filters: readonly string[];
  readonly groups: readonly string[];
  readonly hasSecret: boolean;
}

export const webhookKind: Kind = {
  kind: 'Webhook',
  description: 'A webhook of the organization; its name in paths is metadata.name',
  spec: Type.Object(
    {
      displayName: Type.Optional(Type.String()),
      url: Type.String(),
      active: Type.Optional(Type.Boolean()),
      format: Type.Optional(Type.Enum(['raw', 'slack', 'ms_teams', 'github_status', 'gitlab_status'])),
      filters: Type.Optional({ ...Names, description: 'Names of events' }),
      groups: Type.Optional({ ...Names, description: 'Names of groups of events' }),
      secret: Type.Optional(
        Type.Union(
          [Type.Object({ env: Type.String() }, closed), Type.Object({ file: Type.String() }, closed), Type.Null()],
          { description: 'A variable, or a file beside the document: { env: NAME } or { file: PATH }; null: none' },
        ),
      ),
    },
    closed,
  ),
  secretField: 'secret',
  complete: ({ filters, groups, ...spec }) => ({
    ...spec,
    ...(filters === undefined ? {} : { filters: sorted(filters as string[]) }),
    ...(groups === undefined ? {} : { groups: sorted(groups as string[]) }),
  }),
  keyOf: (name) => name,
  list: async (api) =>
    (await api.get('hooks')).json.map(
      (hook: HookResponse): PresentObject => ({ object: hook.name, name: hook.name, spec: hookSpec(hook) }),
    ),
  read: async (api, object) => {
    const response = await api.find(`hooks/${part(object)}`);
    return response && { spec: hookSpec(response.json), tags: { hook: response.etag } };
  },
  create: async (api, name, spec) => {
    const { displayName = name, active = true, ...others } = spec;
    await api.post('hooks', hookBody({ ...others, displayName, active, name }));
    return name;
  },
  change: async (api, { from, object, tags, to }) => {
    // The whole webhook, because a body with some of its fields drops the lists that it omits.
    const { secret: _, ...before } = from;
    await api.patch(`hooks/${part(object)}`, hookBody({ ...before, ...to }), tags['hook']);
    return object;
  },
  remove: async (api, object, tags) => void (await api.delete(`hooks/${part(object)}`, tags['hook'])),
};

/** A secret is only said to exist. */
function hookSpec({ active, displayName, filters, format, groups, hasSecret, payloadUrl }: HookResponse): Spec {
  return {
    ...{ displayName, url: payloadUrl, active, format },
    ...{ filters: sorted(filters), groups: sorted(groups), secret: hasSecret ? true : null },
  };
}

function hookBody({ secret, url, ...spec }: Spec) {
  if (secret !== undefined && secret !== null && typeof secret !== 'string')
    throw new ConfigurationError('The secret was not read');
  return {
    ...spec,
    payloadUrl: url,
    ...(secret === undefined ? {} : { secret: secret ?? '__remove-secret' }),
  };
}
