import type { ComponentProps } from 'react';
import styles from './row-button.module.css';

/** A row of a list that opens or selects its item. The class defines its layout. */
export function RowButton({ className, ...rest }: ComponentProps<'button'>) {
  return <button type="button" className={`${styles['row']} ${className}`} {...rest} />;
}
