import type { ComponentProps } from 'react';
import styles from './row-button.module.css';

/** A row of a list that opens or chooses its item. The class lays out what is in it. */
export function RowButton({ className, ...rest }: ComponentProps<'button'>) {
  return <button type="button" className={`${styles['row']} ${className}`} {...rest} />;
}
