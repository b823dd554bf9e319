import { groupSchema, listSchema, userSchema } from './scim.schemas.ts';
import { ScimError } from './scim-error.ts';
import { attributeName } from './scim-filter.ts';
import type { ScimGroup } from './scim-group-service.ts';
import { isActive, type ScimUserRow } from './scim-user-service.ts';
import type { ListRequest, ScimList } from './scim-work.ts';

const defaultCount = 100;
const maxCount = 200;

type Resource = Readonly<Record<string, unknown>>;

interface Selection {
  readonly attributes?: string | undefined;
  readonly excludedAttributes?: string | undefined;
}

/** Throws ScimError. */
export function toListRequest(query: {
  readonly filter?: string | undefined;
  readonly startIndex?: string | undefined;
  readonly count?: string | undefined;
}): ListRequest {
  const startIndex = Math.max(integerOf(query.startIndex ?? '1', 'startIndex'), 1);
  const count = Math.max(integerOf(query.count ?? String(defaultCount), 'count'), 0);
  return { filter: query.filter || null, offset: startIndex - 1, limit: Math.min(count, maxCount) };
}

export function toUserResource(base: string, user: ScimUserRow, selection: Selection): Resource {
  const { displayName, email, externalId, familyName, givenName } = user;
  return select(selection, {
    schemas: [userSchema],
    id: user.id,
    ...(externalId === null ? {} : { externalId }),
    userName: user.login,
    displayName,
    name: { formatted: displayName, givenName, familyName },
    emails: email === '' ? [] : [{ value: email, type: 'work', primary: true }],
    active: isActive(user),
    groups: user.teams.map(({ id, name }) => ({ value: id, display: name })),
    meta: metaOf(`${base}/Users/${user.id}`, 'User', user),
  });
}

export function toGroupResource(base: string, group: ScimGroup, selection: Selection): Resource {
  const { displayName, externalId, members } = group;
  return select(selection, {
    schemas: [groupSchema],
    id: group.id,
    ...(externalId === null ? {} : { externalId }),
    displayName,
    ...(members === null ? {} : { members: members.map(({ id, login }) => ({ value: id, display: login })) }),
    meta: metaOf(`${base}/Groups/${group.id}`, 'Group', group),
  });
}

export function toListResource<Row>({ rows, startIndex, total }: ScimList<Row>, toResource: (row: Row) => Resource) {
  const Resources = rows.map(toResource);
  return { schemas: [listSchema], totalResults: total, startIndex, itemsPerPage: Resources.length, Resources };
}

export function wantsMembers(selection: Selection): boolean {
  return isSelected(selection, 'members');
}

function select(selection: Selection, resource: Resource): Resource {
  const always = ['schemas', 'id'];
  const kept = Object.entries(resource).filter(([name]) => always.includes(name) || isSelected(selection, name));
  return Object.fromEntries(kept);
}

/** A sub-attribute selects its whole attribute, but excludes nothing: `name.givenName` selects `name`. */
function isSelected({ attributes, excludedAttributes }: Selection, name: string): boolean {
  const lower = name.toLowerCase();
  const names = (text: string): string[] => text.split(',').map((each) => attributeName(each.trim()));
  if (attributes) return names(attributes).some((each) => each.split('.')[0] === lower);
  return !names(excludedAttributes ?? '').includes(lower);
}

function metaOf(location: string, resourceType: string, times: { readonly createdAt: Date; readonly changedAt: Date }) {
  const { changedAt, createdAt } = times;
  return { resourceType, created: createdAt.toISOString(), lastModified: changedAt.toISOString(), location };
}

function integerOf(text: string, name: string): number {
  if (!/^-?\d{1,9}$/.test(text)) throw new ScimError('invalidValue', `${name} is not a valid number`);
  return Number(text);
}
