import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { TokenItem } from '../../platform/app/contract.ts';
import styles from '../../platform/app/settings-page.module.css';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { queryClient, trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { Code } from '../../platform/ui/code.tsx';
import { Dialog, DialogActions } from '../../platform/ui/dialog.tsx';
import { CheckboxField, SelectField, TextField } from '../../platform/ui/field.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { isWhole, newScope, type Scope, ScopesField } from './scopes-field.tsx';
import { daySeconds, lifetimesWithin, useMaxSeconds, usualDays } from './token-lifetime.ts';
import type { TokenOwner } from './token-owner.ts';

const powers = [
  ['member', 'The role member: updates all stacks'],
  ['admin', 'The role admin: everything, including members and tokens'],
  ['service', 'No role: only the permissions below'],
] as const;
type Power = (typeof powers)[number][0];

interface DialogProps {
  readonly owner: TokenOwner;
  readonly onClose: () => void;
}

/** The request that creates a token. */
interface Request {
  readonly name: string;
  readonly description?: string;
  readonly expires?: number;
  readonly scopes?: { readonly permissions: string[]; readonly stacks: string }[];
}

/** Creates a token for an owner. Only the dialog keeps the response. */
function useCreation(owner: TokenOwner, onMade: (value: string) => void) {
  const options = {
    // The response contains the value of the token: no cache may keep it.
    gcTime: 0,
    onSuccess: ({ value }: { readonly value: string }) => {
      onMade(value);
      void queryClient.invalidateQueries({ queryKey: trpc.tokens.pathKey() });
    },
  };
  const mine = useMutation(trpc.tokens.createMine.mutationOptions(options));
  const ofTeam = useMutation(trpc.tokens.createOfTeam.mutationOptions(options));
  const ofOrganization = useMutation(trpc.tokens.create.mutationOptions(options));
  const chosen = { me: mine, team: ofTeam, organization: ofOrganization }[owner.of];
  const { error, isPending, reset } = chosen;
  return {
    error,
    isPending,
    reset,
    send: (request: Request, power: Power): void => {
      if (owner.of === 'me') mine.mutate(request);
      else if (owner.of === 'team') ofTeam.mutate({ ...request, organization: owner.organization, team: owner.team });
      else ofOrganization.mutate({ ...request, organization: owner.organization, power });
    },
  };
}

const leads = {
  me: 'It has your permissions in all your organizations, and ends with your account.',
  team: 'It has the grants of the team, and ends with the team.',
  organization: 'It belongs to the organization and does not end when a member leaves.',
} as const;

export function CreateTokenDialog({ onClose, owner }: DialogProps) {
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const maxSeconds = useMaxSeconds(owner);
  const [chosenDays, setDays] = useState<string | null>(null);
  const days = chosenDays ?? usualDays(maxSeconds ?? null);
  const [power, setPower] = useState<Power>('member');
  const [isLimited, setIsLimited] = useState(false);
  const [scopes, setScopes] = useState<readonly Scope[]>([newScope]);
  const [value, setValue] = useState<string | null>(null);
  const creation = useCreation(owner, setValue);
  const needsScopes = owner.of === 'organization' && power === 'service';
  const hasScopes = needsScopes || isLimited;
  if (value !== null)
    return (
      <TokenValue
        value={value}
        onClose={() => {
          creation.reset();
          onClose();
        }}
      />
    );
  const submit = (): void => {
    const seconds = Number(days) * daySeconds;
    const request = {
      name: name.trim(),
      description: description.trim(),
      ...(seconds === 0 ? {} : { expires: Math.floor(Date.now() / 1000) + seconds }),
      ...(hasScopes
        ? {
            scopes: scopes.map(({ permissions, stacks }) => ({ permissions: [...permissions], stacks: stacks.trim() })),
          }
        : {}),
    };
    creation.send(request, power);
  };
  return (
    <ActionDialog
      title="Create a token"
      description={leads[owner.of]}
      action="Create the token"
      error={creation.error}
      isPending={creation.isPending || maxSeconds === undefined}
      isReady={name.trim() !== '' && (!hasScopes || scopes.every(isWhole))}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label="Name"
        value={name}
        maxLength={100}
        required
        hint="Shown in the audit log. It cannot be used for another token later."
        onChange={({ target }) => setName(target.value)}
      />
      <TextField
        label="Description"
        value={description}
        maxLength={300}
        placeholder="What the token is for"
        onChange={({ target }) => setDescription(target.value)}
      />
      <SelectField
        label="Expires after"
        value={days}
        options={lifetimesWithin(maxSeconds ?? null)}
        hint={maxSeconds == null ? undefined : 'The organization limits the lifetime of tokens.'}
        onChange={({ target }) => setDays(target.value)}
      />
      {owner.of === 'organization' ? (
        <SelectField
          label="Permissions"
          value={power}
          options={powers}
          onChange={({ target }) => setPower(target.value as Power)}
        />
      ) : null}
      {needsScopes ? null : (
        <CheckboxField
          label="Limit it to some stacks and permissions"
          checked={isLimited}
          onChange={({ target }) => setIsLimited(target.checked)}
        />
      )}
      {hasScopes ? <ScopesField scopes={scopes} onChange={setScopes} /> : null}
    </ActionDialog>
  );
}

/** The value of a new token, which is shown only here and only once. `note`: what happens to the previous value. */
function TokenValue({
  note,
  onClose,
  value,
}: {
  readonly value: string;
  readonly note?: ReactNode;
  readonly onClose: () => void;
}) {
  return (
    <Dialog
      title="The token"
      description="It is shown only this once. Store it where you keep secrets."
      isOpen
      onClose={onClose}
    >
      <Code>{value}</Code>
      {note === undefined ? null : <p className={styles['note']}>{note}</p>}
      <p className={styles['note']}>The CLI takes it from the environment variable PULUMI_ACCESS_TOKEN.</p>
      <DialogActions>
        <Button kind="main" onClick={onClose}>
          I have stored it
        </Button>
      </DialogActions>
    </Dialog>
  );
}

const overlaps = [
  ['0', 'No time: it is revoked now'],
  ['3600', 'An hour'],
  ['86400', 'A day'],
  ['604800', '7 days'],
  ['2592000', '30 days'],
] as const;

/** Gives a token another value. */
export function RotateTokenDialog({ onClose, owner, token }: DialogProps & { readonly token: TokenItem }) {
  const [overlap, setOverlap] = useState('86400');
  const [made, setMade] = useState<{ readonly value: string; readonly previousUntil: string | null } | null>(null);
  const options = {
    // As for a new token.
    gcTime: 0,
    onSuccess: (rotated: { readonly value: string; readonly previousUntil: string | null }) => {
      setMade(rotated);
      void queryClient.invalidateQueries({ queryKey: trpc.tokens.pathKey() });
    },
  };
  const mine = useMutation(trpc.tokens.rotateMine.mutationOptions(options));
  const ofTeam = useMutation(trpc.tokens.rotateOfTeam.mutationOptions(options));
  const ofOrganization = useMutation(trpc.tokens.rotate.mutationOptions(options));
  const { error, isPending, reset } = { me: mine, team: ofTeam, organization: ofOrganization }[owner.of];
  const how = { id: token.id, overlapSeconds: Number(overlap) };
  if (made !== null)
    return (
      <TokenValue
        value={made.value}
        note={
          made.previousUntil === null || overlap === '0' ? (
            'The previous value is no longer valid.'
          ) : (
            <>
              The previous value stays valid until <Time at={made.previousUntil} />.
            </>
          )
        }
        onClose={() => {
          reset();
          onClose();
        }}
      />
    );
  const submit = (): void => {
    if (owner.of === 'me') mine.mutate(how);
    else if (owner.of === 'team') ofTeam.mutate({ ...how, organization: owner.organization, team: owner.team });
    else ofOrganization.mutate({ ...how, organization: owner.organization });
  };
  return (
    <ActionDialog
      title={`Rotate ${token.name ?? (token.description || 'this token')}?`}
      description="The token gets a new value, and its lifetime starts again. Its name, scopes and grants stay, and running updates go on."
      action="Rotate the token"
      isDanger={overlap === '0'}
      error={error}
      isPending={isPending}
      onSubmit={submit}
      onClose={onClose}
    >
      <SelectField
        label="The current value stays valid for"
        value={overlap}
        options={overlaps}
        hint={
          overlap === '0'
            ? 'Requests with the old value are refused at once, and updates that run with it lose their lock.'
            : 'Replace the old value everywhere before then.'
        }
        onChange={({ target }) => setOverlap(target.value)}
      />
    </ActionDialog>
  );
}

export function RevokeTokenDialog({ onClose, owner, token }: DialogProps & { readonly token: TokenItem }) {
  const options = thenRefresh(onClose);
  const mine = useMutation(trpc.tokens.revokeMine.mutationOptions(options));
  const ofTeam = useMutation(trpc.tokens.revokeOfTeam.mutationOptions(options));
  const ofOrganization = useMutation(trpc.tokens.revoke.mutationOptions(options));
  const { error, isPending } = { me: mine, team: ofTeam, organization: ofOrganization }[owner.of];
  const { id } = token;
  const submit = (): void => {
    if (owner.of === 'me') mine.mutate({ id });
    else if (owner.of === 'team') ofTeam.mutate({ id, organization: owner.organization, team: owner.team });
    else ofOrganization.mutate({ id, organization: owner.organization });
  };
  return (
    <ActionDialog
      title={`Revoke ${token.name ?? (token.description || 'this token')}?`}
      description="Requests with it are refused at once, and updates that run with it lose their lock. This cannot be undone."
      action="Revoke the token"
      isDanger
      error={error}
      isPending={isPending}
      onSubmit={submit}
      onClose={onClose}
    />
  );
}
