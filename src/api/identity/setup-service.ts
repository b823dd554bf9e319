import { OrganizationNotVisibleError } from '../access/organizations.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Caller } from '../platform/http/request.ts';
import { createSetupRepository } from './setup-repository.ts';

/** What a team needs after its first update. Only site admins see, and can do, those of the whole server: `provider` and `backups`. */
export type SetupStep = 'people' | 'trust' | 'rules' | 'provider' | 'backups';

/** Finds out how far an organization is set up. */
export class SetupService {
  readonly #context: Pick<ApiContext, 'config' | 'db'>;

  constructor(context: Pick<ApiContext, 'config' | 'db'>) {
    this.#context = context;
  }

  /** The steps, in their order, and whether each is done; none before the first update. Throws NotFoundError. */
  async list(caller: Caller, organization: string): Promise<{ readonly step: SetupStep; readonly isDone: boolean }[]> {
    const { config, db } = this.#context;
    const found = await createSetupRepository(db).find(organization);
    if (!found) throw new OrganizationNotVisibleError();
    if (!found.hasUpdated) return [];
    return [
      { step: 'people', isDone: found.hasPeople },
      { step: 'trust', isDone: found.hasTrust },
      { step: 'rules', isDone: found.hasRules },
      ...(caller.siteAdmin
        ? ([
            { step: 'provider', isDone: config.oidc !== null },
            { step: 'backups', isDone: config.backup.to !== null },
          ] as const)
        : []),
    ];
  }
}
