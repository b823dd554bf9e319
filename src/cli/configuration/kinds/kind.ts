import type { TObject } from 'typebox';
import type { OrganizationApi } from '../organization-api.ts';

export type Spec = Readonly<Record<string, unknown>>;

/** ETags of an object, by part. */
export type Tags = Readonly<Record<string, string | null>>;

/** An object of an organization, as the server has it. */
export interface PresentObject {
  /** How paths of the API name it. */
  readonly object: string;
  /** Its name in an exported configuration. */
  readonly name: string;
  readonly spec: Spec;
  /** Why it cannot be deleted. */
  readonly fixed?: string;
  /** Another organization's; it is not exported. */
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
  /** The fields that differ. */
  readonly fields: readonly string[];
  readonly tags: Tags;
}

/** An object that a document refers to. */
export interface Reference {
  readonly kind: KindName;
  readonly name: string;
  /** Of the field in the spec. */
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
/** In the order in which they are created. */
export type KindName = (typeof kindNames)[number];

/** A kind of object in a configuration. Fields that a document omits are neither compared nor changed, except those that `complete` adds. */
export interface Kind {
  readonly kind: KindName;
  readonly description: string;
  readonly spec: TObject;
  /** The form of names, if not any. */
  readonly names?: { readonly pattern: string; readonly form: string };
  /** The schema of one document, if it depends on its fields. */
  schemaOf?(spec: Spec): TObject;
  /** The spec as it is compared: sorted, and with the defaults of fields that say which object it is. */
  complete(spec: Spec): Spec;
  /** Identifies an object that no configuration has declared yet. */
  keyOf(name: string, spec: Spec): string;
  /** Fields that cannot be changed. */
  readonly fixedFields?: readonly string[];
  /** The field with a reference to a secret. */
  readonly secretField?: string;
  /** Only site admins see and change it. */
  readonly ofOperators?: true;
  references?(spec: Spec): readonly Reference[];
  /** What the server takes before these users are members; null: nothing. */
  withoutMembers?(spec: Spec, logins: ReadonlySet<string>): Spec | null;
  list(api: OrganizationApi): Promise<readonly PresentObject[]>;
  /** As in the list, with ETags; null if there is none. */
  read(api: OrganizationApi, object: string): Promise<SeenObject | null>;
  /** Returns how paths of the API name it. */
  create(api: OrganizationApi, name: string, spec: Spec): Promise<string>;
  /** Returns how paths of the API name it from now on. */
  change(api: OrganizationApi, edit: Edit): Promise<string>;
  remove(api: OrganizationApi, object: string, tags: Tags): Promise<void>;
  /** Makes several changes in one call, all or none; only of a kind whose objects never change. Returns the same as each alone. */
  changeTogether?(api: OrganizationApi, changes: readonly ObjectChange[]): Promise<readonly (string | null)[]>;
}

/** An object is created if `present` is missing, replaced if both are there, and deleted if `wanted` is missing. */
export interface ObjectChange {
  readonly wanted?: Spec;
  readonly present?: PresentObject;
}

/** How many changes one call makes: the server holds locks meanwhile. */
export const changesPerCall = 100;

/** JSON text that is the same for all orders of members: the server stores them in its own. */
export function canonicalText(value: unknown): string {
  return JSON.stringify(value, (_name, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : each,
  );
}

/** A part of a path. */
export function part(name: string): string {
  return encodeURIComponent(name);
}

/** The given names, sorted, each once. */
export function sorted(names: readonly string[]): string[] {
  return [...new Set(names)].toSorted();
}
