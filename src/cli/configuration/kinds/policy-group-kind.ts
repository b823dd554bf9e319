import { Type } from 'typebox';
import { type Kind, type PresentObject, part, type Spec, sorted } from './kind.ts';

const closed = { additionalProperties: false } as const;

interface GroupResponse {
  readonly name: string;
  readonly isOrgDefault: boolean;
  readonly stacks: readonly { readonly name: string; readonly routingProject: string }[];
  readonly appliedPolicyPacks: readonly {
    readonly name: string;
    readonly version?: number;
    readonly versionTag?: string;
    readonly config: object;
  }[];
}

interface Pack {
  readonly name: string;
  readonly version: number | string;
  readonly config?: object;
}

export const policyGroupKind: Kind = {
  kind: 'PolicyGroup',
  description: 'The policy packs that updates of some stacks must run; the default group has all stacks of no other',
  spec: Type.Object(
    {
      stacks: Type.Optional(Type.Array(Type.String({ pattern: '^[^/]+/[^/]+$', description: 'project/stack' }))),
      packs: Type.Optional(
        Type.Array(
          Type.Object(
            {
              name: Type.String(),
              version: Type.Union([Type.Integer(), Type.String()]),
              config: Type.Optional(Type.Object({})),
            },
            closed,
          ),
        ),
      ),
    },
    closed,
  ),
  complete: ({ packs, stacks }) => ({
    ...(stacks === undefined ? {} : { stacks: sorted(stacks as string[]) }),
    ...(packs === undefined ? {} : { packs: sortPacks(packs as Pack[]) }),
  }),
  keyOf: (name) => name,
  list: async (api) => {
    const groups: { name: string; isOrgDefault: boolean }[] = (await api.get('policygroups')).json.policyGroups;
    const found = await Promise.all(
      groups.map(async ({ isOrgDefault, name }): Promise<PresentObject | null> => {
        const seen = await policyGroupKind.read(api, name);
        const fixed = isOrgDefault ? { fixed: 'it is the default policy group' } : {};
        return seen && { object: name, name, spec: seen.spec, ...fixed };
      }),
    );
    return found.filter((each) => each !== null);
  },
  read: async (api, object) => {
    const response = await api.find(`policygroups/${part(object)}`);
    return response && { spec: groupSpec(response.json), tags: { group: response.etag } };
  },
  create: async (api, name, spec) => {
    await api.post('policygroups', { name });
    if (Object.keys(spec).length > 0) await api.patch(`policygroups/${part(name)}`, groupBody(spec));
    return name;
  },
  change: async (api, { object, tags, to }) => {
    await api.patch(`policygroups/${part(object)}`, groupBody(to), tags['group']);
    return object;
  },
  remove: async (api, object, tags) => void (await api.delete(`policygroups/${part(object)}`, tags['group'])),
};

function sortPacks(packs: readonly Pack[]): Pack[] {
  return packs
    .map(({ config = {}, name, version }) => ({
      name,
      version: /^\d{1,9}$/.test(String(version)) ? Number(version) : version,
      config,
    }))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

function groupSpec({ appliedPolicyPacks, isOrgDefault, stacks }: GroupResponse): Spec {
  const packs = appliedPolicyPacks.map(({ config, name, version, versionTag }) => ({
    name,
    version: version ?? versionTag ?? '',
    config,
  }));
  return {
    ...(isOrgDefault ? {} : { stacks: sorted(stacks.map(({ name, routingProject }) => `${routingProject}/${name}`)) }),
    packs: sortPacks(packs),
  };
}

function groupBody({ packs, stacks }: Spec) {
  return {
    ...(stacks === undefined
      ? {}
      : {
          stacks: (stacks as string[]).map((each) => {
            const [routingProject, name] = each.split('/');
            return { name, routingProject };
          }),
        }),
    ...(packs === undefined
      ? {}
      : {
          policyPacks: (packs as Pack[]).map(({ config, name, version }) => ({
            name,
            ...(typeof version === 'number' ? { version } : { versionTag: version }),
            config,
          })),
        }),
  };
}
