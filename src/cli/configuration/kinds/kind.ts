import type { TObject } from 'typebox';
import type { OrganizationApi } from '../organization-api.ts';

export type Spec = Readonly<Record<string, unknown>>;

/** ETags of an object, by part. */
export type Tags = Readonly<Record<string, string | null>>;

export interface PresentObject {
  /** The object's name in paths of the API. */
  readonly object: string;
  /** Its name in an exported configuration. */
  readonly name: string;
  readonly spec: Spec;
  /** Why it cannot be deleted. */
  readonly fixed?: string;
  /** It belongs to another organization, and is not exported. */
  readonly isElsewhere?: true;
  /** A member who has not accepted the invitation. */
  readonly isInvited?: true;
}

export interface SeenObject {
  readonly spec: Spec;
  readonly tags: Tags;
}

export interface Edit {
  readonly object: string;
  readonly name: string;
  readonly from: Spec;
  readonly to: Spec;
  readonly fields: readonly string[];
  readonly tags: Tags;
}

export interface Reference {
  readonly kind: KindName;
  readonly name: string;
  /** The position of the reference in the spec. */
  readonly path: readonly (string | number)[];
}

export const kindNames = [
  'Organization',
  'Quota',
  'User',
  'Member',
  'Role',
  'Team',
  'Issuer',
  'Grant',
  'UpdateRule',
  'RetentionRule',
  'PolicyGroup',
  'Webhook',
  'StackWebhook',
] as const;
/** In the order of creation. */
export type KindName = (typeof kindNames)[number];

/**
 * A kind of object in a configuration. Fields that a document omits are neither compared nor changed, except fields that `complete` adds.
 */
export interface Kind {
  readonly kind: KindName;
  readonly description: string;
  readonly spec: TObject;
  /** The format of names, if it is restricted. */
  readonly names?: { readonly pattern: string; readonly form: string };
  /** The schema of one document, if it depends on its fields. */
  schemaOf?(spec: Spec): TObject;
  /** The spec in the form in which it is compared: sorted, with defaults for fields that identify the object. */
  complete(spec: Spec): Spec;
  /** Identifies an object that no configuration has declared yet. */
  keyOf(name: string, spec: Spec): string;
  readonly fixedFields?: readonly string[];
  /** The field that refers to a secret. */
  readonly secretField?: string;
  /** Only site admins see and change it. */
  readonly ofOperators?: true;
  references?(spec: Spec): readonly Reference[];
  /** The part that the server accepts before these users are members; null: nothing. */
  withoutMembers?(spec: Spec, logins: ReadonlySet<string>): Spec | null;
  list(api: OrganizationApi): Promise<readonly PresentObject[]>;
  /** The object as in the list, with ETags; null if it does not exist. */
  read(api: OrganizationApi, object: string): Promise<SeenObject | null>;
  /** Returns the object's name in paths of the API. */
  create(api: OrganizationApi, name: string, spec: Spec): Promise<string>;
  /** Returns the object's name in paths of the API after the change. */
  change(api: OrganizationApi, edit: Edit): Promise<string>;
  remove(api: OrganizationApi, object: string, tags: Tags): Promise<void>;
  /** All or none; only for a kind whose objects never change. Returns the same results as separate calls. */
  changeTogether?(api: OrganizationApi, changes: readonly ObjectChange[]): Promise<readonly (string | null)[]>;
}

/** The object is created if `present` is missing, deleted if `wanted` is missing, and otherwise replaced. */
export interface ObjectChange {
  readonly wanted?: Spec;
  readonly present?: PresentObject;
}

/** Maximum number of changes in one call: the server holds locks meanwhile. */
export const changesPerCall = 100;

/** JSON text that does not depend on the order of members, because the server stores them in its own order. */
export function canonicalText(value: unknown): string {
  return JSON.stringify(value, (_name, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );
}

export function part(name: string): string {
  return encodeURIComponent(name);
}

export function sorted(names: readonly string[]): string[] {
  return [...new Set(names)].toSorted();
}
