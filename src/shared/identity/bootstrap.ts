import { serverSource } from '../audit/audit-event.ts';
import { createAuditRepository } from '../audit/audit-repository.ts';
import { hashToken } from '../platform/crypto/secret-token.ts';
import type { Database } from '../platform/db/database.ts';
import { BootstrapError, type BootstrapFile, isManaged } from './bootstrap-file.ts';
import { createBootstrapRepository } from './bootstrap-repository.ts';
import { createIdentityRepository } from './identity-repository.ts';

/** Sentences for the operator. */
export interface BootstrapResult {
  readonly removed: readonly string[];
  readonly warnings: readonly string[];
}

interface ListedToken {
  readonly login: string;
  readonly userId: string;
  readonly organizationId: string;
  readonly hash: Buffer;
}

/**
 * Where the file manages, removes entries that it does not list. Runs in one transaction, one at a time, so every replica can apply it at
 * every start. Updates whose token or membership is removed lose their lease; cancel them afterwards. Throws BootstrapError, and changes
 * nothing, if a token belongs to another user.
 */
export async function applyBootstrap(db: Database, file: BootstrapFile): Promise<BootstrapResult> {
  return db.inTransaction(async (tx) => {
    const identity = createIdentityRepository(tx);
    const bootstrap = createBootstrapRepository(tx);
    const removed: string[] = [];
    const removedFrom = new Map<string, readonly string[]>();
    const warnings: string[] = [];
    await bootstrap.lock();
    const applied = await bootstrap.findRevision();
    if (applied !== null && (file.revision ?? 0) < applied) {
      const revision = file.revision === undefined ? 'has no revision' : `is revision ${file.revision}`;
      return {
        removed,
        warnings: [`the file ${revision} and was skipped: revision ${applied} was applied before`],
      };
    }
    if (file.revision !== undefined) await bootstrap.setRevision(file.revision);

    const before = await bootstrap.readDigest();
    const organizationIds = new Map<string, string>();
    const managedIds: string[] = [];
    const userIds = new Map<string, string>();
    for (const organization of file.organizations) {
      const { id } = await identity.ensureOrganization(organization.name);
      organizationIds.set(organization.name, id);
      if (isManaged(file, organization)) managedIds.push(id);
      for (const { login } of organization.members ?? [])
        if (!userIds.has(login)) userIds.set(login, (await identity.ensureUser(login)).id);
    }
    const scope = { managedIds, everywhere: file.manage === true };

    // The lock order is the same everywhere: users, memberships, tokens.
    const siteAdminIds: string[] = [];
    const tokens = new Map<string, ListedToken>();
    for (const { members = [], name } of file.organizations) {
      const organizationId = organizationIds.get(name) as string;
      for (const { login, siteAdmin, token } of members) {
        const userId = userIds.get(login) as string;
        if (siteAdmin) siteAdminIds.push(userId);
        if (siteAdmin !== undefined) await bootstrap.setSiteAdmin(userId, siteAdmin, organizationId);
        if (token === undefined) continue;
        const hash = hashToken(token);
        const listed = tokens.get(hash.toString('hex'));
        if (listed && listed.userId !== userId) throw sharedToken(login);
        tokens.set(hash.toString('hex'), listed ?? { login, userId, organizationId, hash });
      }
    }
    for (const login of await bootstrap.withdrawSiteAdmins(scope, siteAdminIds))
      removed.push(`${login} is no longer a site admin`);

    for (const { members = [], name } of file.organizations) {
      const organizationId = organizationIds.get(name) as string;
      const memberIds = members.map(({ login }) => userIds.get(login) as string);
      const keptOut = await bootstrap.listKeptOut(organizationId, memberIds);
      for (const [at, { login, role }] of members.entries()) {
        const userId = memberIds[at] as string;
        if (keptOut.includes(userId))
          warnings.push(
            `${login} was not added to ${name}, whose identity provider has suspended or removed the member: if you want that, run holdfast admin add-member`,
          );
        else await bootstrap.setMembership(organizationId, userId, role);
      }
      if (!managedIds.includes(organizationId)) continue;
      const start = removed.length;
      for (const login of await bootstrap.removeOtherMembers(organizationId, memberIds))
        removed.push(`${login} was removed from ${name}`);
      removedFrom.set(name, removed.slice(start));
    }
    if (scope.everywhere) {
      const listedIds = [...organizationIds.values()];
      for (const { login, organization } of await bootstrap.removeMembersElsewhere(listedIds))
        removed.push(`${login} was removed from ${organization}, which the file no longer lists`);
    }

    for (const { login, ...token } of tokens.values()) {
      const outcome = await bootstrap.listToken(token);
      if (outcome === 'foreign') throw sharedToken(login);
      if (outcome === 'deactivated') warnings.push(`${login} is deactivated: its token was not added`);
      if (outcome === 'revoked') warnings.push(`the token of ${login} was revoked by an operator and stays revoked`);
    }
    const hashes = [...tokens.values()].map(({ hash }) => hash);
    for (const { id, login } of await bootstrap.withdrawTokens(scope, hashes))
      removed.push(`token ${id} of ${login} was revoked`);
    for (const { id, login } of await bootstrap.listReplacedTokens(hashes))
      warnings.push(
        `an earlier token of ${login} from the bootstrap file still works, since the file does not manage it: holdfast admin revoke ${id}`,
      );

    for (const name of await bootstrap.listWithoutAdmin(managedIds)) warnings.push(`organization ${name} has no admin`);
    if (scope.everywhere && siteAdminIds.length === 0) warnings.push('the file lists no site admin: there is none');
    if ((await bootstrap.readDigest()) !== before) {
      // Changes to other organizations and to personal tokens do not affect an organization.
      for (const organization of [null, ...organizationIds.keys()]) {
        const shown = organization === null ? removed : (removedFrom.get(organization) ?? []);
        const details = { revision: file.revision ?? null, removed: shown.slice(0, 20) };
        const event = { action: 'bootstrap.apply', object: 'HOLDFAST_BOOTSTRAP', details } as const;
        await createAuditRepository(tx).insert(serverSource, { ...event, organization });
      }
    }
    return { removed, warnings };
  });
}

function sharedToken(login: string): BootstrapError {
  return new BootstrapError(`HOLDFAST_BOOTSTRAP: the token of ${login} belongs to another user`);
}
