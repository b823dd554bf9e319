import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useContext, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { CutName } from '../../ui/cut-name.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { CheckboxField, TextField } from '../../ui/field.tsx';
import { SubmitBlock } from '../../ui/submit-block.ts';
import type { SavedView, ViewedPage } from '../contract.ts';
import { trpc } from '../trpc.ts';
import { maxNameChars, thenReadViews, useSavedViews, viewLink } from './saved-views.ts';
import { ViewActions } from './view-actions.tsx';
import styles from './views-dialog.module.css';

const pageNames: Readonly<Record<SavedView['page'], string>> = { stacks: 'Stacks', activity: 'Activity', ci: 'CI' };

/** Saves the view of the page, and lists the saved ones. */
export default function ViewsDialog({
  onClose,
  organization,
  page,
  search,
}: {
  readonly organization: string;
  readonly page: SavedView['page'];
  readonly search: object;
  readonly onClose: () => void;
}) {
  const { data, error } = useSavedViews(organization);
  const halt = useContext(SubmitBlock) ?? error?.message ?? null;
  return (
    <Dialog
      title="Views"
      description="A view keeps the filters of a page. Pinned views are in the side bar."
      isOpen
      onClose={onClose}
    >
      <SaveForm organization={organization} page={page} search={search} />
      {halt === null ? null : (
        <p className={styles['error']} role="alert">
          {halt}
        </p>
      )}
      {data === undefined || data.items.length === 0 ? null : (
        <ul className={styles['views']} aria-label="Saved views">
          {data.items.map((view) => (
            <li key={view.id} className={styles['view']}>
              <div className={styles['about']}>
                <Link {...viewLink(organization, view)} className={styles['link']} onClick={onClose}>
                  <CutName text={view.name} />
                </Link>
                <span className={styles['note']}>
                  {pageNames[view.page]}
                  {view.isOwn ? (view.isShared ? ', shared' : '') : `, shared by ${view.author}`}
                </span>
              </div>
              <ViewActions organization={organization} view={view} />
            </li>
          ))}
        </ul>
      )}
    </Dialog>
  );
}

function SaveForm({
  organization,
  page,
  search,
}: {
  readonly organization: string;
  readonly page: SavedView['page'];
  readonly search: object;
}) {
  const [name, setName] = useState('');
  const [isShared, setIsShared] = useState(false);
  const create = useMutation(trpc.views.create.mutationOptions(thenReadViews));
  const given = Object.entries(search).flatMap(([key, value]) =>
    value === undefined || value === '' ? [] : [[key, String(value)]],
  );
  const save = (): void =>
    create.mutate(
      {
        ...{ organization, isShared, name: name.trim() },
        viewed: { page, search: Object.fromEntries(given) } as ViewedPage,
      },
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
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() !== '' && !create.isPending) save();
      }}
    >
      <div className={styles['fields']}>
        <TextField
          label="Name of this view"
          value={name}
          maxLength={maxNameChars}
          onChange={({ target }) => {
            create.reset();
            setName(target.value);
          }}
        />
        <Button type="submit" kind="main" disabled={name.trim() === '' || create.isPending}>
          Save
        </Button>
      </div>
      <CheckboxField
        label={`Share with the members of ${organization}`}
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
