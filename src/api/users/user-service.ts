import type { IdentityRepository } from '../../shared/identity/identity-repository.ts';
import type { Role } from '../../shared/identity/roles.ts';

/** Memberships and tokens of the calling user. */
export class UserService {
  readonly #identity: IdentityRepository;

  constructor({ identity }: { identity: IdentityRepository }) {
    this.#identity = identity;
  }

  /** The organizations that the user belongs to. */
  listMemberships(userId: string): Promise<readonly { readonly name: string; readonly role: Role }[]> {
    return this.#identity.listMemberships(userId);
  }

  /** Records that the token was used. */
  async touchToken(tokenId: string): Promise<void> {
    await this.#identity.touchToken(tokenId);
  }
}
