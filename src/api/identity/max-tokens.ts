import {
  createTokenRepository,
  type TokenOwner,
  type TokenOwnerFilter,
} from '../../shared/identity/token-repository.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ConflictError } from '../../shared/platform/errors/errors.ts';

/** Valid tokens of a user, a team, and an organization itself. Tokens of CI runs have their own limit. */
const maxTokens: Readonly<Record<TokenOwner['kind'], number>> = {
  personal: 100,
  team: 100,
  organization: 1_000,
  service: 1_000,
};

/** Concurrent calls wait until the transaction ends. */
export async function assertTokenLimit(
  tx: Queryable,
  kind: TokenOwner['kind'],
  ownerFilter: TokenOwnerFilter,
): Promise<void> {
  const most = maxTokens[kind];
  if ((await createTokenRepository(tx).countForNew(ownerFilter, most)) >= most)
    throw new ConflictError(`There are ${most} valid tokens here, the maximum: revoke one first`);
}
