import {
  createManagedObjectRepository,
  type ManagedObjectKey,
  type ManagedObjectRow,
} from '../../shared/access/managed-object-repository.ts';
import { createQuotaRepository } from '../../shared/access/quotas/quota-repository.ts';
import { ConflictError, InvalidRequestError } from '../../shared/platform/errors/errors.ts';
import { isStorableJson } from '../../shared/platform/json/storable-json.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import { decodeContinuation, encodeContinuation } from '../platform/http/continuation.ts';
import type { Caller } from '../platform/http/request.ts';
import { lockManagement } from './locked-access.ts';
import type { ChangeManagedObjectsRequest } from './managed-objects.schemas.ts';
import { getOrganization } from './organizations.ts';

const pageSize = 1_000;
const maxObjects = 20_000;

interface ManagedObjectPage {
  readonly objects: readonly ManagedObjectRow[];
  /** Null on the last page. */
  readonly continuationToken: string | null;
}

/** A configuration under version control declares these objects. The objects themselves do not record it. */
export class ManagedObjectService {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  async list(organization: string, continuationToken: string | undefined): Promise<ManagedObjectPage> {
    const after = continuationToken ? decodeContinuation(continuationToken, readKey) : null;
    const { id } = await getOrganization(this.#db, organization);
    const rows = await createManagedObjectRepository(this.#db).listPage(id, after, pageSize + 1);
    const objects = rows.slice(0, pageSize);
    const last = objects.at(-1);
    return { objects, continuationToken: last && rows.length > pageSize ? tokenOf(last) : null };
  }

  /** The objects have the names of the API's paths. */
  async listOfKind(organization: string, kind: string): Promise<readonly string[]> {
    const { id } = await getOrganization(this.#db, organization);
    return createManagedObjectRepository(this.#db).listOfKind(id, kind, maxObjects);
  }

  /** Null if no configuration declares the object. */
  async findDeclaration(organization: string, kind: string, object: string) {
    const { id } = await getOrganization(this.#db, organization);
    const found = await createManagedObjectRepository(this.#db).findDeclaration(id, kind, object);
    return (
      found && {
        name: found.name,
        labels: JSON.parse(found.labels) as Readonly<Record<string, string>>,
        appliedBy: found.appliedBy,
        appliedAt: found.appliedAt.toISOString(),
      }
    );
  }

  /** Makes all changes of a request, or none. */
  async change(
    caller: Caller,
    organization: string,
    { remove = [], set = [] }: ChangeManagedObjectsRequest,
    audit: AuditTrail,
  ): Promise<void> {
    const names = set.map(tokenOf);
    if (new Set(names).size < names.length) throw new InvalidRequestError('set names an object twice');
    if (!set.every(({ labels, name, object }) => isStorableJson([labels, name, object])))
      throw new InvalidRequestError('A name or label is not valid text');
    const rows = set.map(({ labels, secretDigest = null, ...each }) => ({
      ...each,
      secretDigest,
      labels: JSON.stringify(labels),
    }));
    await this.#db.inTransaction(async (tx) => {
      await lockManagement(tx, organization, caller);
      if (set.length + remove.length === 0) return audit.settle();
      const { id } = await getOrganization(tx, organization);
      // Changes run one at a time, because each counts the objects of the others.
      await createQuotaRepository(tx).lockOrganization(id);
      const managed = createManagedObjectRepository(tx);
      await managed.remove(id, remove);
      await managed.set(id, caller.login ?? '', rows);
      if ((await managed.count(id, maxObjects + 1)) > maxObjects)
        throw new ConflictError(`A configuration can declare at most ${maxObjects} objects of an organization`);
      return audit.record(tx, {
        organization,
        object: organization,
        details: { managed: set.length, released: remove.length },
      });
    });
  }
}

function tokenOf({ kind, name }: ManagedObjectKey): string {
  return encodeContinuation(JSON.stringify([kind, name]));
}

function readKey(position: string): ManagedObjectKey | null {
  try {
    const [kind, name] = JSON.parse(position) as unknown[];
    const isKey = typeof kind === 'string' && typeof name === 'string' && isText(kind) && isText(name);
    return isKey ? { kind, name } : null;
  } catch {
    return null;
  }
}

function isText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}
