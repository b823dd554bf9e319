import { isDeepStrictEqual } from 'node:util';
import { ConfigurationError } from './configuration-error.ts';
import { type Document, keyOf, type Labels, type SecretReference, titleOf } from './document.ts';
import { type Kind, type KindName, kindNames, type PresentObject, type Spec, sorted } from './kinds/kind.ts';
import { kinds } from './kinds/kinds.ts';
import { listRecords, type ManagedRecord, type RecordKey } from './managed-records.ts';
import type { OrganizationApi } from './organization-api.ts';
import { findProblems, type PresentState } from './plan-problems.ts';
import { throwProblems } from './read-documents.ts';
import { digestSecret, isSecretOf, readSecret } from './secret-reference.ts';

/** Never contains a secret. */
export interface FieldChange {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

export interface Change {
  readonly action: 'create' | 'change' | 'delete';
  readonly kind: KindName;
  readonly organization: string;
  readonly name: string;
  readonly fields: readonly FieldChange[];
  /** Includes the secret itself; undefined for a deletion. */
  readonly wanted?: Spec;
  /** Undefined for a creation. */
  readonly present?: PresentObject;
  readonly document?: Document;
  readonly secretDigest?: string;
}

/** A document that is applied only in part, or not at all, until invited users accept. */
export interface Waiting {
  readonly kind: KindName;
  readonly organization: string;
  readonly name: string;
  /** Logins of the invited users. */
  readonly members: readonly string[];
}

export interface OrganizationPlan {
  readonly api: OrganizationApi;
  readonly changes: readonly Change[];
  readonly unchanged: number;
  readonly waiting: readonly Waiting[];
  /** Objects that are already as declared, but not yet recorded as declared. */
  readonly noted: readonly ManagedRecord[];
  /** Records of objects that no longer exist. */
  readonly released: readonly RecordKey[];
}

export interface PlanOptions {
  /** Deletes declared objects with all these labels that no document declares any longer. */
  readonly prune: Labels | null;
  /** Also deletes organizations, and with each all its objects. */
  readonly deletesOrganizations?: boolean;
}

/** Throws ConfigurationError. */
export async function planOrganization(
  api: OrganizationApi,
  documents: readonly Document[],
  { deletesOrganizations = false, prune }: PlanOptions,
): Promise<OrganizationPlan> {
  const isNew = documents.some(({ kind }) => kind === 'Organization') && !(await api.find('access-policy'));
  const records = isNew ? [] : await listRecords(api);
  const isPruned = ({ labels }: ManagedRecord): boolean =>
    prune !== null && Object.entries(prune).every(([name, value]) => labels[name] === value);
  const pruned = records.filter(isPruned);
  const needed = new Set<KindName>([...documents, ...pruned].map(({ kind }) => kind));
  for (const { kind, spec } of documents)
    for (const each of kinds[kind].references?.(spec) ?? []) needed.add(each.kind);
  const objects = new Map(
    await Promise.all(
      [...needed].map(
        async (name): Promise<[KindName, readonly PresentObject[]]> => [
          name,
          isNew && !kinds[name].ofOperators ? [] : await kinds[name].list(api),
        ],
      ),
    ),
  );
  const state: PresentState = { objects, records };
  throwProblems(findProblems(documents, state));
  const { ready, waiting, whole: held } = withoutInvited(documents, state);
  const found = await matchDocuments(api, ready, state);
  const declared = new Set(documents.map(keyOf));
  const claimed = new Set(found.taken.map(({ kind, object }) => JSON.stringify([kind, object])));
  const { organization } = api;
  // An object that a waiting document declared before is no longer meant for its present holder.
  const gone = [
    ...pruned.filter((record) => !declared.has(keyOf({ ...record, organization }))),
    ...records.filter((record) => held.has(keyOf({ ...record, organization }))),
  ];
  const removals = gone.flatMap(({ kind, name, object }): Change[] => {
    const present = objects.get(kind)?.find((each) => each.object === object);
    const isKept = claimed.has(JSON.stringify([kind, object]));
    return present && !isKept ? [{ action: 'delete', kind, organization, name, fields: [], present }] : [];
  });
  // The deletion of the organization deletes all its objects.
  const whole = deletesOrganizations ? removals.filter(({ kind }) => kind === 'Organization') : [];
  const deletions = whole.length > 0 ? whole : removals;
  throwProblems(
    whole.length === 0
      ? []
      : documents.map((each) => `${each.locate()}: the organization of ${titleOf(each)} would be deleted`),
  );
  throwProblems(
    deletions.flatMap((change) =>
      change.present?.fixed === undefined || whole.includes(change)
        ? []
        : [`${titleOf(change)} cannot be deleted: ${change.present.fixed}`],
    ),
  );
  const changes = [...found.changes, ...deletions];
  throwProblems(lastAdmin(state, changes));
  const isDeleted = ({ kind, name }: RecordKey): boolean =>
    deletions.some((each) => each.kind === kind && each.name === name);
  return {
    api,
    changes: inOrder(changes),
    unchanged: documents.length - new Set([...found.changes, ...waiting].map(keyOf)).size,
    waiting,
    noted: found.noted,
    released: whole.length > 0 ? [] : gone.filter((record) => !isDeleted(record)),
  };
}

interface WithoutInvited {
  readonly ready: readonly Document[];
  readonly waiting: readonly Waiting[];
  /** Keys of documents that have no applicable part. */
  readonly whole: ReadonlySet<string>;
}

/**
 * The documents without members who have not yet accepted an invitation, or who will be invited: the server accepts only members. Throws
 * ConfigurationError if a document would grant more until then.
 */
function withoutInvited(documents: readonly Document[], { objects }: PresentState): WithoutInvited {
  const present = objects.get('Member') ?? [];
  const members = new Set(present.filter(({ isInvited }) => !isInvited).map(({ object }) => object));
  const declared = documents.filter(({ kind }) => kind === 'Member');
  const invited = new Set([...present, ...declared].map(({ name }) => name).filter((name) => !members.has(name)));
  const waiting: Waiting[] = [];
  const whole = new Set<string>();
  const problems: string[] = [];
  const ready = documents.flatMap((document): Document[] => {
    const { kind, name, organization, spec } = document;
    const { references, withoutMembers } = kinds[kind];
    const awaited = (references?.(spec) ?? []).filter((each) => each.kind === 'Member' && invited.has(each.name));
    if (awaited.length === 0 || !withoutMembers) return [document];
    const logins = sorted(awaited.map((each) => each.name));
    if (spec['effect'] === 'deny')
      problems.push(
        `${document.locate(['user'])}: ${titleOf(document)} denies permissions to ${logins.join(', ')}, who is not yet a member: add it after the invitation is accepted`,
      );
    waiting.push({ kind, organization, name, members: logins });
    const rest = withoutMembers(spec, invited);
    if (!rest) whole.add(keyOf(document));
    return rest ? [{ ...document, spec: rest }] : [];
  });
  throwProblems(problems);
  return { ready, waiting, whole };
}

interface Matched {
  readonly changes: readonly Change[];
  readonly noted: readonly ManagedRecord[];
  /** Present objects that documents declare. */
  readonly taken: readonly { readonly kind: KindName; readonly object: string }[];
}

async function matchDocuments(
  api: OrganizationApi,
  documents: readonly Document[],
  { objects, records }: PresentState,
): Promise<Matched> {
  const changes: Change[] = [];
  const noted: ManagedRecord[] = [];
  const taken: { kind: KindName; object: string }[] = [];
  const problems: string[] = [];
  const recordOf = new Map(records.map((record) => [`${record.kind} ${record.name}`, record]));
  for (const kind of kindNames) {
    const own = documents.filter((each) => each.kind === kind);
    if (own.length === 0) continue;
    const present = objects.get(kind) ?? [];
    const byObject = new Map(present.map((each) => [each.object, each]));
    const byKey = new Map(present.map((each) => [kinds[kind].keyOf(each.name, each.spec), each]));
    const declaredBy = new Map<string, Document>();
    for (const document of own) {
      const record = recordOf.get(`${kind} ${document.name}`);
      const key = kinds[kind].keyOf(document.name, document.spec);
      const match = (record && byObject.get(record.object)) ?? byKey.get(key);
      const names = [`key ${key}`, ...(match ? [`object ${match.object}`] : [])];
      const other = names.map((name) => declaredBy.get(name)).find((each) => each !== undefined);
      for (const name of names) declaredBy.set(name, other ?? document);
      if (other) {
        problems.push(
          `${document.locate()}: ${titleOf(document)} is the same object as ${titleOf(other)} at ${other.locate()}`,
        );
        continue;
      }
      if (match) taken.push({ kind, object: match.object });
      const change = await compare(api, document, match, record).catch((error: unknown) => {
        if (!(error instanceof ConfigurationError)) throw error;
        problems.push(`${document.locate()}: ${error.message}`);
        return null;
      });
      if (change) changes.push(change);
      else if (
        match &&
        !(record && record.object === match.object && isDeepStrictEqual(record.labels, document.labels))
      )
        noted.push({
          ...{ kind, name: document.name, object: match.object, labels: document.labels },
          ...(record?.secretDigest === undefined ? {} : { secretDigest: record.secretDigest }),
        });
    }
  }
  throwProblems(problems);
  return { changes, noted, taken };
}

/** Returns null if the object is as declared. Throws ConfigurationError. */
async function compare(
  { organization }: OrganizationApi,
  document: Document,
  present: PresentObject | undefined,
  record: ManagedRecord | undefined,
): Promise<Change | null> {
  const { folder, kind, name } = document;
  const { fixedFields = [], secretField = '' } = kinds[kind] as Kind;
  const { [secretField]: reference, ...rest } = document.spec;
  const wanted: Record<string, unknown> = { ...rest };
  let secret: string | null = null;
  const fields = Object.entries(rest).flatMap(([field, to]): FieldChange[] => {
    const from = present?.spec[field] ?? null;
    return present && isDeepStrictEqual(from, to ?? null) ? [] : [{ field, from, to }];
  });
  let digest = record?.secretDigest;
  if (reference === null) {
    digest = undefined;
    if (present?.spec[secretField] !== null) {
      wanted[secretField] = null;
      if (present) fields.push({ field: secretField, from: '(secret)', to: null });
    }
  } else if (reference !== undefined) {
    secret = await readSecret(reference as SecretReference, folder);
    const isKnown = present?.spec[secretField] === true && digest !== undefined;
    if (!isKnown || !isSecretOf(digest as string, secret)) {
      digest = digestSecret(secret);
      const to = isKnown ? '(secret) changed' : '(secret)';
      const from = present?.spec[secretField] === true ? '(secret)' : null;
      fields.push({
        field: secretField,
        from,
        to: from !== null && !isKnown ? '(secret), not known to be the same' : to,
      });
    }
  }
  const fixed = present && fields.find(({ field }) => fixedFields.includes(field));
  if (fixed)
    throw new ConfigurationError(
      `${fixed.field} of ${titleOf(document)} cannot be changed: delete it, or give the new one another name`,
    );
  if (present && fields.length === 0) return null;
  // The secret is sent even if it is unchanged: the server accepts no new address without it.
  if (secret !== null) wanted[secretField] = secret;
  const about = {
    kind,
    organization,
    name,
    fields,
    wanted,
    document,
    ...(digest === undefined ? {} : { secretDigest: digest }),
  };
  return present ? { action: 'change', ...about, present } : { action: 'create', ...about };
}

/** Describes changes that would leave the organization without an admin. */
function lastAdmin({ objects }: PresentState, changes: readonly Change[]): string[] {
  const members = changes.filter(({ kind, present }) => kind === 'Member' && present?.spec['role'] === 'admin');
  if (members.length === 0) return [];
  const lost = new Set(members.map(({ present }) => present?.object));
  const admins = (objects.get('Member') ?? []).filter(
    ({ object, spec }) => spec['role'] === 'admin' && !lost.has(object),
  );
  return admins.length > 0 ? [] : members.map((change) => `${titleOf(change)} is the last admin of the organization`);
}

/** Objects that others refer to are created first, and deleted last. */
function inOrder(changes: readonly Change[]): Change[] {
  const rank = ({ action, kind }: Change): number =>
    action === 'delete' ? 2 * kindNames.length - kindNames.indexOf(kind) : kindNames.indexOf(kind);
  return changes.toSorted((one, other) => rank(one) - rank(other));
}
