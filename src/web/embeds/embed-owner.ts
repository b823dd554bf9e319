import { useMutation, useQuery } from '@tanstack/react-query';
import type { StackRef } from '../platform/app/procedure-types.ts';
import { trpc } from '../platform/app/trpc.ts';

/** Without the names of a stack, the owner is an organization. */
export type EmbedOwner = StackRef | { readonly organization: string };

const isStack = (owner: EmbedOwner): owner is StackRef => 'stack' in owner;

export function useEmbeds(owner: EmbedOwner) {
  const ofStack = useQuery(
    trpc.embeds.ofStack.queryOptions(isStack(owner) ? owner : noStack(owner), { enabled: isStack(owner) }),
  );
  const ofOrganization = useQuery(
    trpc.embeds.list.queryOptions({ organization: owner.organization }, { enabled: !isStack(owner) }),
  );
  return isStack(owner) ? ofStack : ofOrganization;
}

/** `onSuccess` gets the token, which the server sends only once. */
export function useCreation(owner: EmbedOwner, onSuccess: (made: { readonly token: string }) => void) {
  // No cache may keep the token.
  const options = { gcTime: 0, onSuccess };
  const ofStack = useMutation(trpc.embeds.createOfStack.mutationOptions(options));
  const ofOrganization = useMutation(trpc.embeds.create.mutationOptions(options));
  const { error, isPending, reset } = isStack(owner) ? ofStack : ofOrganization;
  const create = (kind: 'badge' | 'feed'): void => {
    if (isStack(owner)) ofStack.mutate({ ...owner, kind });
    else ofOrganization.mutate(owner);
  };
  return { create, error, isPending, reset };
}

export function useRevocation(owner: EmbedOwner, options: { readonly onSuccess: () => Promise<void> }) {
  const ofStack = useMutation(trpc.embeds.revokeOfStack.mutationOptions(options));
  const ofOrganization = useMutation(trpc.embeds.revoke.mutationOptions(options));
  const { error, isPending } = isStack(owner) ? ofStack : ofOrganization;
  const revoke = (id: string): void => {
    if (isStack(owner)) ofStack.mutate({ ...owner, id });
    else ofOrganization.mutate({ ...owner, id });
  };
  return { error, isPending, revoke };
}

const noStack = ({ organization }: EmbedOwner): StackRef => ({ organization, project: '', stack: '' });
