import { createProviderRepository } from '../../../shared/identity/provider-repository.ts';
import type { OidcConfig } from '../../../shared/platform/config/oidc.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { ForbiddenError } from '../../../shared/platform/errors/errors.ts';
import type { Logger } from '../../../shared/platform/logger/logger.ts';
import { isLogin } from '../../../shared/stacks/names.ts';
import { changePeople, patientLockMs } from '../../access/people-lock.ts';
import { recordOfPerson } from '../../audit/personal-events.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import { type MappedAccess, mapGroups, readGroupMapping } from './group-mapping.ts';
import { groupPlans, type KnownUser, type Plan } from './group-memberships.ts';
import type { Claims } from './oidc-client.ts';
import type { SignedIn } from './session-service.ts';

const maxGroups = 10_000;

/** A person as the provider describes them, checked against the settings. */
interface Person {
  readonly issuer: string;
  readonly subject: string;
  readonly access: ReadonlyMap<string, MappedAccess>;
}

/** Finds or creates the user of an account, and applies the group mapping. */
export class OidcPeople {
  readonly #config: OidcConfig;
  readonly #mapping: ReturnType<typeof readGroupMapping>;
  /** Applied one after the other: a role that ends takes its teams along. */
  readonly #plans: readonly Plan[];

  constructor(config: OidcConfig, logger: Logger) {
    this.#config = config;
    this.#mapping = config.groupsFile === null ? [] : readGroupMapping(config.groupsFile);
    this.#plans = groupPlans(logger);
  }

  /**
   * `begin` begins the session in the transaction of the changes. Waits for other changes of people only if there are changes. Throws
   * ForbiddenError with a message for the user, UnavailableError.
   */
  async admit<T>(
    db: Database,
    claims: Claims,
    audit: AuditTrail,
    begin: (tx: Queryable, user: SignedIn) => Promise<T>,
  ): Promise<T> {
    this.#assertDomain(claims);
    const person = {
      issuer: claims.iss,
      subject: claims.sub,
      access: mapGroups(this.#mapping, this.#groupsOf(claims)),
    };
    const known = await db.inTransaction((tx) => this.#findUnchanged(tx, claims, person));
    const enter = async (tx: Queryable, { login, userId }: KnownUser): Promise<T> => {
      await createProviderRepository(tx).noteSignIn(person.issuer, person.subject);
      return begin(tx, { login, userId, method: 'provider' });
    };
    if (known)
      return db.inTransaction(async (tx) => {
        audit.identify({ userId: known.userId, login: known.login, signIn: 'provider' });
        return enter(tx, known);
      });
    // People who come back from the provider cannot repeat the call, so it is retried here.
    return changePeople(
      db,
      'sign-in',
      async (tx) => enter(tx, await this.#change(tx, claims, person, audit)),
      patientLockMs,
    );
  }

  /** Null if the sign-in creates the user, or changes roles or teams. Throws the errors of `admit`. */
  async #findUnchanged(db: Queryable, claims: Claims, person: Person): Promise<KnownUser | null> {
    const found = await createProviderRepository(db).findIdentity(person.issuer, person.subject);
    if (!found) {
      this.#loginOf(claims, person);
      return null;
    }
    assertActive(found);
    const access = await accessOf(db, found.userId, person);
    for (const plan of this.#plans) if ((await plan(db, found, access)).length > 0) return null;
    return found;
  }

  async #change(tx: Queryable, claims: Claims, person: Person, audit: AuditTrail): Promise<KnownUser> {
    const { issuer, subject } = person;
    const found = await createProviderRepository(tx).findIdentity(issuer, subject);
    if (found) assertActive(found);
    const user = found ?? (await this.#create(tx, claims, person));
    const { login, userId } = user;
    audit.identify({ userId, login, signIn: 'provider' });
    const access = await accessOf(tx, userId, person);
    for (const plan of this.#plans) for (const change of await plan(tx, user, access)) await change(tx, audit);
    if (!found)
      await recordOfPerson(tx, audit, {
        ...{ action: 'user.create', login, object: login },
        details: { issuer, subject },
      });
    return user;
  }

  #loginOf(claims: Claims, { access }: Person): string {
    const { createUsers, loginClaim } = this.#config;
    if (createUsers === 'none' || (createUsers === 'mapped' && access.size === 0))
      throw new ForbiddenError(
        'You have no account here, and none of your groups gives you access; ask your administrator',
      );
    const login = claims[loginClaim];
    if (typeof login !== 'string' || !isLogin(login) || (loginClaim === 'email' && claims['email_verified'] !== true))
      throw new ForbiddenError(`The provider sends no usable login: claim ${loginClaim}`);
    return login;
  }

  async #create(tx: Queryable, claims: Claims, person: Person): Promise<KnownUser> {
    const login = this.#loginOf(claims, person);
    const providers = createProviderRepository(tx);
    const email = claims['email_verified'] === true ? textOf(claims['email']) : '';
    const userId = await providers.insertUser(login, textOf(claims['name']), email);
    // An existing login is never adopted: an attacker who can choose names at the provider could choose an admin's.
    if (userId === null)
      throw new ForbiddenError(
        `The login ${await providers.getTakenLogin(login)} belongs to another user; an operator can link you: holdfast admin user link`,
      );
    await providers.insertIdentity(userId, person.issuer, person.subject);
    return { userId, login };
  }

  #assertDomain(claims: Claims): void {
    const { allowedDomains } = this.#config;
    if (allowedDomains.length === 0) return;
    const email = textOf(claims['email']).toLowerCase();
    const domain = email.slice(email.lastIndexOf('@') + 1);
    if (claims['email_verified'] !== true || !email.includes('@') || !allowedDomains.includes(domain))
      throw new ForbiddenError('Only users with a verified e-mail address in certain domains may sign in');
  }

  #groupsOf(claims: Claims): readonly string[] {
    const { groupsClaim } = this.#config;
    const elsewhere = claims['_claim_names'];
    // Entra omits the groups if there are too many. Treating them as no groups would remove all roles.
    if (typeof elsewhere === 'object' && elsewhere !== null && groupsClaim in elsewhere)
      throw new ForbiddenError(
        'The provider did not send your groups because there are too many; ask your administrator',
      );
    const groups = [claims[groupsClaim] ?? []].flat().slice(0, maxGroups);
    return groups.filter((group): group is string => typeof group === 'string');
  }
}

function assertActive({ isActive }: { readonly isActive: boolean }): void {
  if (!isActive) throw new ForbiddenError('This user was deactivated');
}

/** Leaves out organizations whose provider has suspended the user. */
async function accessOf(db: Queryable, userId: string, { access }: Person): Promise<Person['access']> {
  const suspensions = await createProviderRepository(db).listSuspensions(userId);
  return new Map([...access].filter(([organization]) => !suspensions.includes(organization)));
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, 300).toWellFormed().replaceAll('\0', '') : '';
}
