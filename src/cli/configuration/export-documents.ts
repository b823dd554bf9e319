import { Document as YamlDocument } from 'yaml';
import { CallRefusedError } from './configuration-error.ts';
import { apiVersion } from './document.ts';
import { type KindName, kindNames, type PresentObject } from './kinds/kind.ts';
import { kinds } from './kinds/kinds.ts';
import { listRecords, type ManagedRecord } from './managed-records.ts';
import type { OrganizationApi } from './organization-api.ts';

/** Declared objects keep the names and labels of their declarations. */
export async function* exportDocuments(api: OrganizationApi): AsyncGenerator<string> {
  const records = await listRecords(api);
  for (const kind of kindNames) {
    const declared = new Map(records.filter((each) => each.kind === kind).map((each) => [each.object, each]));
    const names = new Set([...declared.values()].map(({ name }) => name));
    for (const present of await listPresent(api, kind)) {
      if (present.isElsewhere) continue;
      const record = declared.get(present.object);
      const name = record?.name ?? freeName(present.name, names);
      names.add(name);
      yield writeDocument(api.organization, kind, present, name, record);
    }
  }
}

/** Objects that only site admins see are left out if the token does not belong to one. */
async function listPresent(api: OrganizationApi, kind: KindName): Promise<readonly PresentObject[]> {
  try {
    return await kinds[kind].list(api);
  } catch (error) {
    if (kinds[kind].ofOperators && error instanceof CallRefusedError && error.status === 403) return [];
    throw error;
  }
}

function writeDocument(
  organization: string,
  kind: KindName,
  present: PresentObject,
  name: string,
  record: ManagedRecord | undefined,
): string {
  const { secretField = '' } = kinds[kind];
  const labels = record?.labels ?? {};
  const { [secretField]: secret, ...spec } = present.spec;
  const document = new YamlDocument({
    apiVersion,
    kind,
    metadata: {
      name,
      ...(kind === 'Organization' ? {} : { organization }),
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
    },
    // Null is equivalent to a missing field, or to no limit.
    spec: Object.fromEntries(Object.entries(spec).filter(([field, value]) => value !== null || isKept(kind, field))),
  });
  if (secret === true) document.comment = ` The secret is not exported. In the spec: ${secretField}: { env: NAME }`;
  return `---\n${document.toString({ lineWidth: 120 })}`;
}

function isKept(kind: KindName, field: string): boolean {
  return kind === 'Organization' && field === 'defaultPermissions';
}

/** The name, or the name with a number. */
function freeName(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  for (let at = 2; ; at++) if (!taken.has(`${name}-${at}`)) return `${name}-${at}`;
}
