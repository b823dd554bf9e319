import type { Role } from '../../shared/access/roles.ts';
import type { IdentityRepository } from '../../shared/identity/identity-repository.ts';

/** Memberships and tokens of the calling user. */
export class UserService {
  readonly #identity: IdentityRepository;

  constructor({ identity }: { identity: IdentityRepository }) {
    this.#identity = identity;
  }

  /** The organizations in which the token is valid. */
  listMemberships(tokenId: string): Promise<readonly { readonly name: string; readonly role: Role | null }[]> {
    return this.#identity.listMemberships(tokenId);
  }

  /** Records that the token was used. */
  async touchToken(tokenId: string): Promise<void> {
    await this.#identity.touchToken(tokenId);
  }
}
