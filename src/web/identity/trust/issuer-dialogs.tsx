import { useMutation } from '@tanstack/react-query';
import { ManagedDialog } from '../../platform/app/managed-dialog.tsx';
import type { IssuerItem } from '../../platform/app/procedure-types.ts';
import { thenRefresh } from '../../platform/app/then-refresh.ts';
import { apiClient, trpc } from '../../platform/app/trpc.ts';
import { useEdit, useRemoval } from '../../platform/app/use-edit.ts';
import { SelectField, TextField } from '../../platform/ui/field.tsx';
import { issuerDialogTexts } from '../texts.tsx';

interface DialogProps {
  readonly organization: string;
  readonly onClose: () => void;
}

const replays = [
  ['once', issuerDialogTexts.once],
  ['within-life', issuerDialogTexts.anyTimes],
] as const;
type Replay = (typeof replays)[number][0];
type EditedIssuer = Omit<IssuerItem, 'policies'>;

function draftOf(issuer: EditedIssuer | null) {
  return {
    name: issuer?.name ?? '',
    url: issuer?.url ?? 'https://',
    audience: issuer?.audience ?? '',
    replay: issuer?.replay ?? ('once' as Replay),
    life: issuer?.maxSeconds?.toString() ?? '',
  };
}

/** `issuer` is null for a new one. */
export function IssuerDialog({ issuer, onClose, organization }: DialogProps & { readonly issuer: IssuerItem | null }) {
  const {
    base,
    change,
    dialog,
    draft: { audience, life, name, replay, url },
  } = useEdit<EditedIssuer | null, ReturnType<typeof draftOf>>({
    item: issuer,
    draftOf,
    read: () => readIssuer(organization, issuer?.id ?? ''),
  });
  const options = thenRefresh(onClose);
  const create = useMutation(trpc.issuers.create.mutationOptions(options));
  const edit = useMutation(trpc.issuers.edit.mutationOptions(options));
  const submit = (): void => {
    const given = {
      organization,
      name: name.trim(),
      replay,
      maxSeconds: life === '' ? null : Number(life),
      ...(audience.trim() === '' ? {} : { audience: audience.trim() }),
    };
    if (issuer === null) create.mutate({ ...given, url: url.trim() });
    else edit.mutate({ ...given, id: issuer.id, ...(base === null ? {} : { revision: base.revision }) });
  };
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Issuer', object: issuer?.id ?? null }}
      title={issuer === null ? issuerDialogTexts.create : issuerDialogTexts.edit(issuer.name)}
      description={issuer === null ? issuerDialogTexts.createLead : issuerDialogTexts.editLead}
      action={issuer === null ? issuerDialogTexts.createAction : issuerDialogTexts.save}
      {...dialog(issuer === null ? create : edit)}
      isReady={name.trim() !== '' && URL.canParse(url) && /^\d*$/.test(life)}
      onSubmit={submit}
      onClose={onClose}
    >
      <TextField
        label={issuerDialogTexts.name}
        value={name}
        maxLength={100}
        required
        onChange={({ target }) => change({ name: target.value })}
      />
      {issuer === null ? (
        <TextField
          label={issuerDialogTexts.url}
          type="url"
          value={url}
          maxLength={500}
          required
          hint={issuerDialogTexts.urlHint}
          onChange={({ target }) => change({ url: target.value })}
        />
      ) : null}
      <TextField
        label={issuerDialogTexts.audience}
        value={audience}
        maxLength={500}
        placeholder={issuerDialogTexts.audienceExample(organization)}
        hint={issuerDialogTexts.audienceHint}
        onChange={({ target }) => change({ audience: target.value })}
      />
      <SelectField
        label={issuerDialogTexts.replay}
        value={replay}
        options={replays}
        onChange={({ target }) => change({ replay: target.value as Replay })}
      />
      <TextField
        label={issuerDialogTexts.lifetime}
        value={life}
        inputMode="numeric"
        maxLength={6}
        placeholder="7200"
        onChange={({ target }) => change({ life: target.value.trim() })}
      />
    </ManagedDialog>
  );
}

async function readIssuer(organization: string, id: string): Promise<EditedIssuer> {
  return (await apiClient.issuers.get.query({ organization, id })).issuer;
}

export function DeleteIssuerDialog({ issuer, onClose, organization }: DialogProps & { readonly issuer: IssuerItem }) {
  const { dialog, item } = useRemoval<EditedIssuer>({ item: issuer, read: () => readIssuer(organization, issuer.id) });
  const remove = useMutation(trpc.issuers.delete.mutationOptions(thenRefresh(onClose)));
  return (
    <ManagedDialog
      managed={{ organization, kind: 'Issuer', object: issuer.id }}
      title={issuerDialogTexts.remove(item.name)}
      description={issuerDialogTexts.removeLead}
      action={issuerDialogTexts.removeAction}
      isDanger
      typed={item.name}
      {...dialog(remove)}
      onSubmit={() => remove.mutate({ organization, id: item.id, revision: item.revision })}
      onClose={onClose}
    />
  );
}
