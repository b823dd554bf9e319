import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useContext, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { CutName } from '../../ui/cut-name.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { CheckboxField, SelectField, TextField } from '../../ui/field.tsx';
import { SubmitBlock } from '../../ui/submit-block.ts';
import type { ViewedPage } from '../procedure-types.ts';
import { trpc } from '../trpc.ts';
import { maxNameChars, thenReadViews, useSavedViews, viewLink } from './saved-views.ts';
import { viewTexts } from './texts.ts';
import { ViewActions } from './view-actions.tsx';
import styles from './views-dialog.module.css';

/** `owners` are the organizations whose views are offered. */
export default function ViewsDialog({
  onClose,
  owners,
  viewed,
}: {
  readonly owners: readonly string[];
  readonly viewed: ViewedPage;
  readonly onClose: () => void;
}) {
  const { error, items = [] } = useSavedViews(owners);
  const halt = useContext(SubmitBlock) ?? error?.message ?? null;
  return (
    <Dialog title={viewTexts.views} description={viewTexts.lead} isOpen onClose={onClose}>
      <SaveForm owners={owners} viewed={viewed} />
      {halt === null ? null : (
        <p className={styles['error']} role="alert">
          {halt}
        </p>
      )}
      {items.length === 0 ? null : (
        <ul className={styles['views']} aria-label={viewTexts.saved}>
          {items.map((view) => (
            <li key={view.id} className={styles['view']}>
              <div className={styles['about']}>
                <Link {...viewLink(view)} className={styles['link']} onClick={onClose}>
                  <CutName text={view.name} />
                </Link>
                <span className={styles['note']}>
                  {viewTexts.about({
                    ...view,
                    organization: owners.length > 1 ? view.organization : null,
                    page: viewTexts[view.page],
                  })}
                </span>
              </div>
              <ViewActions view={view} viewed={viewed} />
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}

function SaveForm({ owners, viewed }: { readonly owners: readonly string[]; readonly viewed: ViewedPage }) {
  const [name, setName] = useState('');
  const [isShared, setIsShared] = useState(false);
  const [chosen, setChosen] = useState('');
  const organization = owners.length === 1 ? (owners[0] ?? '') : chosen;
  const create = useMutation(trpc.views.create.mutationOptions(thenReadViews));
  const isReady = name.trim() !== '' && organization !== '' && !create.isPending;
  const save = (): void =>
    create.mutate(
      { organization, isShared, viewed, name: name.trim() },
      {
        onSuccess: () => {
          setName('');
          setIsShared(false);
        },
      },
    );
  return (
    <form
      className={styles['form']}
      data-draft={name === '' ? undefined : ''}
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) save();
      }}
    >
      {owners.length === 1 ? null : (
        <SelectField
          label={viewTexts.organization}
          hint={viewTexts.organizationHint}
          value={chosen}
          options={[['', viewTexts.chooseOne], ...owners.map((owner) => [owner, owner] as const)]}
          onChange={({ target }) => setChosen(target.value)}
        />
      )}
      <div className={styles['fields']}>
        <TextField
          label={viewTexts.name}
          value={name}
          maxLength={maxNameChars}
          onChange={({ target }) => {
            create.reset();
            setName(target.value);
          }}
        />
        <Button type="submit" kind="main" disabled={!isReady}>
          {viewTexts.save}
        </Button>
      </div>
      <CheckboxField
        label={viewTexts.shareWith(organization)}
        checked={isShared}
        onChange={({ target }) => setIsShared(target.checked)}
      />
      {create.error ? (
        <p className={styles['error']} role="alert">
          {create.error.message}
        </p>
      ) : null}
    </form>
  );
}
