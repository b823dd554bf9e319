import type { StackRef } from '../../shared/stacks/names.ts';
import type { ApiContext } from '../api-context.ts';
import { stackNotFound } from '../stacks/stack-errors.ts';

/** Encrypts and decrypts for a stack named by its path. */
export class SecretService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  async encrypt(ref: StackRef, plaintexts: readonly Buffer[]): Promise<Buffer[]> {
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    return this.#context.cipher.encrypt(stack.id, plaintexts);
  }

  /**
   * Decrypts what the stack at this path encrypted, or one that had the path before it was renamed: old checkpoints name
   * the old path as the place to decrypt at. Throws InvalidRequestError for ciphertexts of other stacks.
   */
  async decrypt(ref: StackRef, ciphertexts: readonly Buffer[]): Promise<Buffer[]> {
    const { cipher, encryptionKeys, identity } = this.#context;
    const organization = await identity.findOrganization(ref.organization);
    const stackIds = organization
      ? await encryptionKeys.listStackIdsByName(organization.id, ref.project, ref.stack)
      : [];
    if (stackIds.length === 0) throw stackNotFound(ref);
    return cipher.decrypt(stackIds, ciphertexts);
  }
}
