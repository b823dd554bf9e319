import type { Role } from '../../shared/access/roles.ts';
import type { IdentityRepository } from '../../shared/identity/identity-repository.ts';
import type { ReadOnlyMode } from '../../shared/platform/read-only/read-only-mode.ts';

export class UserService {
  readonly #identity: IdentityRepository;
  readonly #readOnly: ReadOnlyMode;

  constructor({ identity, readOnly }: { identity: IdentityRepository; readOnly: ReadOnlyMode }) {
    this.#identity = identity;
    this.#readOnly = readOnly;
  }

  /** Organizations in which the token is valid. */
  listMemberships(tokenId: string): Promise<readonly { readonly name: string; readonly role: Role | null }[]> {
    return this.#identity.listMemberships(tokenId);
  }

  /** Does nothing once another site has taken over. */
  async touchToken(tokenId: string): Promise<void> {
    if (this.#readOnly.isFenced) return;
    await this.#identity.touchToken(tokenId);
  }
}
