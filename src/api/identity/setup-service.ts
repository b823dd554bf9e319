import { OrganizationNotVisibleError } from '../access/organizations.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Caller } from '../platform/http/request.ts';
import { createSetupRepository } from './setup-repository.ts';

/** Steps after a team's first update. `provider` and `backups` concern the whole server, so only site admins see and can do them. */
export type SetupStep = 'people' | 'trust' | 'rules' | 'provider' | 'backups';

export class SetupService {
  readonly #context: Pick<ApiContext, 'config' | 'db'>;

  constructor(context: Pick<ApiContext, 'config' | 'db'>) {
    this.#context = context;
  }

  /** Steps in order; none before the first update. */
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
