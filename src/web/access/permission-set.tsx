import type { ReactNode } from 'react';
import { choosePermission, type Permission, permissionLabels, permissions } from './access-labels.ts';
import styles from './permission-set.module.css';
import { permissionTexts } from './texts.tsx';

export function PermissionSet({ names }: { readonly names: readonly string[] }) {
  // Permission to read a stack includes its outputs.
  const shown = names.includes('read') ? names.filter((name) => name !== 'outputs') : names;
  if (shown.length === 0) return <span className={styles['none']}>{permissionTexts.nothing}</span>;
  return (
    <ul className={styles['set']}>
      {shown.map((name) => (
        <li key={name} title={permissionLabels[name as Permission]}>
          {name}
        </li>
      ))}
    </ul>
  );
}

/** Chooses permissions. */
export function PermissionChoice({
  label,
  names,
  of = permissions,
  onChange,
}: {
  readonly label: ReactNode;
  readonly names: readonly string[];
  /** The available permissions. */
  readonly of?: readonly Permission[];
  readonly onChange: (names: string[]) => void;
}) {
  return (
    <fieldset className={styles['choice']}>
      <legend>{label}</legend>
      {of.map((name) => (
        <label key={name} className={styles['option']}>
          <input
            type="checkbox"
            checked={names.includes(name)}
            onChange={({ target }) => onChange(choosePermission(names, of, name, target.checked))}
          />
          <span>
            <b>{name}</b> <span className={styles['words']}>{permissionLabels[name]}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
