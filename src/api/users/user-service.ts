import type { IdentityRepository } from '../../shared/identity/identity-repository.ts';
import type { Role } from '../../shared/identity/roles.ts';

/** Users as they see themselves. */
export class UserService {
  readonly #identity: IdentityRepository;

  constructor({ identity }: { identity: IdentityRepository }) {
    this.#identity = identity;
  }

  /** The organizations that the user is a member of. */
  listMemberships(userId: string): Promise<readonly { readonly name: string; readonly role: Role }[]> {
    return this.#identity.listMemberships(userId);
  }

  /** Notes that the token is in use. */
  async touchToken(tokenId: string): Promise<void> {
    await this.#identity.touchToken(tokenId);
  }
}
