import { Type } from 'typebox';
import { ConfigurationError } from '../configuration-error.ts';
import type { OrganizationApi } from '../organization-api.ts';
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

/** The common parts of both kinds. `locate`: the API of the owner, and the name of the webhook there. */
function hookKind(
  locate: (api: OrganizationApi, object: string) => readonly [api: OrganizationApi, name: string],
): Omit<Kind, 'kind' | 'description' | 'list'> {
  return {
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
    read: async (organization, object) => {
      const [api, name] = locate(organization, object);
      const response = await api.find(`hooks/${part(name)}`);
      return response && { spec: hookSpec(response.json), tags: { hook: response.etag } };
    },
    create: async (organization, object, spec) => {
      const [api, name] = locate(organization, object);
      const { displayName = name, active = true, ...others } = spec;
      await api.post('hooks', hookBody({ ...others, displayName, active, name }));
      return object;
    },
    change: async (organization, { from, object, tags, to }) => {
      const [api, name] = locate(organization, object);
      // Sends the whole webhook, because a body with only some fields drops the lists that it omits.
      const { secret: _, ...before } = from;
      await api.patch(`hooks/${part(name)}`, hookBody({ ...before, ...to }), tags['hook']);
      return object;
    },
    remove: async (organization, object, tags) => {
      const [api, name] = locate(organization, object);
      await api.delete(`hooks/${part(name)}`, tags['hook']);
    },
  };
}

export const webhookKind: Kind = {
  kind: 'Webhook',
  description: 'A webhook of the organization; its name in paths is metadata.name',
  ...hookKind((api, object) => [api, object]),
  list: async (api) =>
    (await api.get('hooks')).json.map(
      (hook: HookResponse): PresentObject => ({ object: hook.name, name: hook.name, spec: hookSpec(hook) }),
    ),
};

export const stackWebhookKind: Kind = {
  kind: 'StackWebhook',
  description: 'A webhook of one stack; metadata.name is project/stack/name, the last of which is its name in paths',
  names: { pattern: '^[^/]+/[^/]+/[A-Za-z0-9._-]{1,32}$', form: 'project/stack/name' },
  ...hookKind((api, object) => {
    const [project = '', stack = '', name = ''] = object.split('/');
    return [api.ofStack(project, stack), name];
  }),
  list: async (api) => {
    const hooks: (HookResponse & { projectName: string; stackName: string })[] = await api.list('stack-hooks', 'hooks');
    return hooks.map((hook): PresentObject => {
      const object = `${hook.projectName}/${hook.stackName}/${hook.name}`;
      return { object, name: object, spec: hookSpec(hook) };
    });
  },
};

/** The server shows only whether there is a secret. */
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
