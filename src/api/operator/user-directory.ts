import { createIdentityRepository } from '../../shared/identity/identity-repository.ts';
import { createPeopleRepository, type ListedPersonRow } from '../../shared/identity/people-repository.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { isLogin } from '../../shared/stacks/names.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import { afterOf, pageOf } from './name-pages.ts';
import type { ChangeUserRequest, CreateUserRequest } from './operator.schemas.ts';
import { assertNotLast, lockOperator } from './operator-access.ts';

export type { ListedPersonRow };

/** Users sign in with the identity provider, or with a password that they or an operator set. */
export class UserDirectory {
  readonly #context: Pick<ApiContext, 'db'>;

  constructor(context: Pick<ApiContext, 'db'>) {
    this.#context = context;
  }

  /** In the order of logins. */
  async list(continuationToken: string | undefined) {
    const people = createPeopleRepository(this.#context.db);
    return pageOf(
      (limit) => people.listAll({ after: afterOf(continuationToken), limit }),
      ({ login }) => login,
    );
  }

  async get(login: string): Promise<ListedPersonRow> {
    const [row] = isLogin(login)
      ? await createPeopleRepository(this.#context.db).listAll({ only: login, after: '', limit: 1 })
      : [];
    if (!row) throw noUser(login);
    return row;
  }

  /** Throws ConflictError if the login is taken. */
  async create(caller: Caller, { login, siteAdmin = false }: CreateUserRequest, audit: AuditTrail): Promise<void> {
    if (!isLogin(login))
      throw new InvalidRequestError(
        'A login has 1 to 100 letters, digits, and _.@-, and begins with a letter or digit',
      );
    await this.#context.db.inTransaction(async (tx) => {
      await lockOperator(tx, caller);
      const people = createPeopleRepository(tx);
      const isTaken = (await people.find(login)) !== null;
      const { id, login: given } = await createIdentityRepository(tx).ensureUser(login);
      if (isTaken || given !== login) throw new ConflictError(`There is already a user ${given}`);
      if (siteAdmin) await people.setSiteAdmin(id, true);
      await audit.record(tx, { organization: null, object: login, details: siteAdmin ? { siteAdmin } : {} });
    });
  }

  /** Throws ConflictError for a last admin. */
  async change(
    caller: Caller,
    login: string,
    { active, siteAdmin }: ChangeUserRequest,
    audit: AuditTrail,
  ): Promise<void> {
    await this.#context.db.inTransaction(async (tx) => {
      await lockOperator(tx, caller);
      const people = createPeopleRepository(tx);
      const user = isLogin(login) ? await people.find(login) : null;
      if (!user) throw noUser(login);
      await assertNotLast(tx, user, { siteAdmin: siteAdmin === false, active: active === false && user.isActive });
      // Nothing is recorded if nothing changes.
      audit.settle();
      if (siteAdmin !== undefined && siteAdmin !== user.siteAdmin) {
        await people.setSiteAdmin(user.id, siteAdmin);
        for (const organization of [null, ...(await people.listManagersOf(login))])
          await audit.record(tx, { organization, object: login, details: { siteAdmin } });
      }
      // This includes a user whom the identity provider has deactivated: they then stay deactivated until an operator decides.
      const isTaken = active === false && (await people.setActive(user.id, false));
      if (isTaken || (active !== undefined && active !== user.isActive)) {
        if (active) await people.setActive(user.id, true);
        const action = active ? 'user.reactivate' : 'user.deactivate';
        for (const organization of [null, ...(await people.listOrganizationsOf(login))])
          await audit.record(tx, { action, organization, object: login });
      }
    });
  }
}

function noUser(login: string): NotFoundError {
  return new NotFoundError(`There is no user ${JSON.stringify(login.slice(0, 100))}`);
}
