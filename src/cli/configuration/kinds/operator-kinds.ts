import { Type } from 'typebox';
import { quotaNames } from '../../../shared/access/quotas/quotas.ts';
import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import { type Kind, type PresentObject, part, type Spec } from './kind.ts';

const closed = { additionalProperties: false } as const;
const Limit = Type.Optional(
  Type.Union([Type.Integer({ minimum: 0, maximum: 999_999_999_999_999 }), Type.Null()], {
    description: 'Null: the limit in the settings; 0: no limit',
  }),
);

export const quotaKind: Kind = {
  kind: 'Quota',
  description: 'Limits of the organization, which site admins set',
  spec: Type.Object(Object.fromEntries(quotaNames.map((name) => [name, Limit])), closed),
  ofOperators: true,
  complete: (spec) => {
    if (Object.values(spec).every((limit) => limit === null))
      throw new InvalidRequestError('A quota sets at least one limit: --prune deletes a quota that is not declared');
    return spec;
  },
  keyOf: () => 'quota',
  list: async (api) => {
    const seen = await quotaKind.read(api, api.organization);
    const isSet = seen !== null && Object.values(seen.spec).some((limit) => limit !== null);
    return isSet ? [{ object: api.organization, name: 'quota', spec: seen.spec }] : [];
  },
  read: async ({ operator }, object) => {
    const response = await operator.find(`organizations/${part(object)}/quota`);
    return response && { spec: response.json as Spec, tags: {} };
  },
  create: async ({ operator, organization }, _name, spec) => {
    await operator.put(`organizations/${part(organization)}/quota`, spec);
    return organization;
  },
  change: async ({ operator }, { from, object, to }) => {
    await operator.put(`organizations/${part(object)}/quota`, { ...from, ...to });
    return object;
  },
  remove: async ({ operator }, object) => void (await operator.put(`organizations/${part(object)}/quota`, {})),
};

interface UserResponse {
  readonly login: string;
  readonly siteAdmin: boolean;
  readonly active: boolean;
  readonly organizations: readonly string[];
}

export const userKind: Kind = {
  kind: 'User',
  description: 'A user of the server, which site admins create; the login is metadata.name',
  spec: Type.Object({ siteAdmin: Type.Optional(Type.Boolean()), active: Type.Optional(Type.Boolean()) }, closed),
  ofOperators: true,
  complete: (spec) => spec,
  keyOf: (name) => name,
  list: async ({ operator, organization }) => {
    const users: UserResponse[] = await operator.list('users', 'users');
    return users.map(
      ({ active, login, organizations, siteAdmin }): PresentObject => ({
        ...{ object: login, name: login, spec: { siteAdmin, active } },
        fixed: 'a user is deactivated instead, by active: false',
        ...(organizations.includes(organization) ? {} : { isElsewhere: true }),
      }),
    );
  },
  read: async ({ operator }, object) => {
    const response = await operator.find(`users/${part(object)}`);
    if (!response) return null;
    const { active, siteAdmin } = response.json as UserResponse;
    return { spec: { siteAdmin, active }, tags: {} };
  },
  create: async ({ operator }, login, { active, siteAdmin }) => {
    await operator.post('users', { login, siteAdmin });
    if (active === false) await operator.patch(`users/${part(login)}`, { active });
    return login;
  },
  change: async ({ operator }, { object, to }) => {
    await operator.patch(`users/${part(object)}`, to);
    return object;
  },
  remove: async () => {
    throw new Error('Users are fixed');
  },
};
