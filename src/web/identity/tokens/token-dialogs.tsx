import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import type { TokenItem } from '../../platform/app/procedure-types.ts';
import styles from '../../platform/app/settings-page.module.css';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { queryClient, trpc } from '../../platform/app/trpc.ts';
import { ActionDialog } from '../../platform/ui/action-dialog.tsx';
import { Button } from '../../platform/ui/button.tsx';
import { Code } from '../../platform/ui/code.tsx';
import { Dialog, DialogActions } from '../../platform/ui/dialog.tsx';
import { CheckboxField, SelectField, TextField } from '../../platform/ui/field.tsx';
import { HaltNote } from '../../platform/ui/halt-note.tsx';
import { Time } from '../../platform/ui/time.tsx';
import { rotationTexts, tokenDialogTexts, tokenValueTexts } from '../texts.tsx';
import { areWhole, newScope, type Scope } from './scopes.ts';
import { ScopesField } from './scopes-field.tsx';
import { daySeconds, lifetimesWithin, useMaxSeconds, usualDays } from './token-lifetime.ts';
import type { TokenOwner } from './token-owner.ts';

const powers = [
  ['member', tokenDialogTexts.powerMember],
  ['admin', tokenDialogTexts.powerAdmin],
  ['service', tokenDialogTexts.powerService],
] as const;
type Power = (typeof powers)[number][0];

interface DialogProps {
  readonly owner: TokenOwner;
  readonly onClose: () => void;
}

interface Request {
  readonly name: string;
  readonly description?: string;
  readonly expires?: number;
  readonly scopes?: { readonly permissions: string[]; readonly stacks: string }[];
}

/** Only the dialog keeps the response. */
function useCreation(owner: TokenOwner, onMade: (value: string) => void) {
  const options = {
    // The response contains the token's value: no cache may keep it.
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
      title={tokenDialogTexts.create}
      description={tokenDialogTexts.createLead[owner.of]}
      action={tokenDialogTexts.createAction}
      error={creation.error}
      isPending={creation.isPending}
      isReady={maxSeconds !== undefined && name.trim() !== '' && (!hasScopes || areWhole(scopes))}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label={tokenDialogTexts.name}
        value={name}
        maxLength={100}
        required
        hint={tokenDialogTexts.nameHint}
        onChange={({ target }) => setName(target.value)}
      />
      <TextField
        label={tokenDialogTexts.description}
        value={description}
        maxLength={300}
        placeholder={tokenDialogTexts.descriptionExample}
        onChange={({ target }) => setDescription(target.value)}
      />
      <SelectField
        label={tokenDialogTexts.expiresAfter}
        value={days}
        options={lifetimesWithin(maxSeconds ?? null)}
        hint={maxSeconds == null ? undefined : tokenDialogTexts.lifetimeHint}
        onChange={({ target }) => setDays(target.value)}
      />
      {owner.of === 'organization' ? (
        <SelectField
          label={tokenDialogTexts.permissions}
          value={power}
          options={powers}
          onChange={({ target }) => setPower(target.value as Power)}
        />
      ) : null}
      {needsScopes ? null : (
        <CheckboxField
          label={tokenDialogTexts.limit}
          checked={isLimited}
          onChange={({ target }) => setIsLimited(target.checked)}
        />
      )}
      {hasScopes ? <ScopesField scopes={scopes} onChange={setScopes} /> : null}
    </ActionDialog>
  );
}

/** The value is shown only here and only once. `note` says what happens to the previous value. */
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
    <Dialog title={tokenValueTexts.title} description={tokenValueTexts.lead} isOpen isKept onClose={onClose}>
      <Code>{value}</Code>
      {note === undefined ? null : <p className={styles['note']}>{note}</p>}
      <p className={styles['note']} data-draft="">
        {tokenValueTexts.variable}
      </p>
      <HaltNote className={styles['note']} />
      <DialogActions>
        <Button kind="main" onClick={onClose}>
          {tokenValueTexts.stored}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

const overlaps = [
  ['0', rotationTexts.overlapNone],
  ['3600', rotationTexts.overlapHour],
  ['86400', rotationTexts.overlapDay],
  ['604800', rotationTexts.overlapDays7],
  ['2592000', rotationTexts.overlapDays30],
] as const;

function nameOf({ description, name }: TokenItem): string {
  return name ?? (description || tokenDialogTexts.thisToken);
}

export function RotateTokenDialog({ onClose, owner, token }: DialogProps & { readonly token: TokenItem }) {
  const [overlap, setOverlap] = useState('86400');
  const [made, setMade] = useState<{ readonly value: string; readonly previousUntil: string | null } | null>(null);
  const options = {
    // The response contains the token's value: no cache may keep it.
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
          made.previousUntil === null || overlap === '0'
            ? tokenValueTexts.previousEnded
            : tokenValueTexts.previousUntil(<Time at={made.previousUntil} />)
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
      title={rotationTexts.title(nameOf(token))}
      description={rotationTexts.lead}
      action={rotationTexts.action}
      isDanger={overlap === '0'}
      error={error}
      isPending={isPending}
      onSubmit={submit}
      onClose={onClose}
    >
      <SelectField
        label={rotationTexts.overlap}
        value={overlap}
        options={overlaps}
        hint={overlap === '0' ? rotationTexts.overlapNoneHint : rotationTexts.overlapHint}
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
      title={tokenDialogTexts.revokeTitle(nameOf(token))}
      description={tokenDialogTexts.revokeLead}
      action={tokenDialogTexts.revokeAction}
      isDanger
      error={error}
      isPending={isPending}
      onSubmit={submit}
      onClose={onClose}
    />
  );
}
