extension GuardrailProbe {
    /// Trained by Tests/Tools/train_probe.py on the prompts of Benchmarks/Answers/development by ten authors, a quarter of them unsafe. The
    /// thresholds let one of 2,000 ordinary requests pass for unsafe, each scored by a probe that was trained without its author.
    static let all = [
        // Qwen2.5 Coder 1.5B Instruct, Q4_K_M
        GuardrailProbe(
            fingerprint: "a8af0622d2358987", layers: [14, 18, 22], scale: 0.00149022, bias: -0.013349, threshold: 2.5,
            marginOfSuspicion: 1.5,
            weights: """
                6P/l8yD9BvHZvf76APf3/P0b2uozD/v/AAgR4Rjr7fvqxvbyCAkFEg0VANvwEhsH9PAQCgoVDyzs6fkd3/YOCh3yFezq8982C/XrBuUC1Q0F7yEAEfwLER\
                YNB/wa/gjx+dURHAL0BA77Av4kCfEOAcnr/woa/AsM9QYGDwIAB+flCBER+QYF/CwN9wXs9x7w4s37EekN2fYBAd0D8xzZ6u0i4R4XCPT6FvwC5gL+++3c\
                D+UV7Af6/gIj0vYBGwXO/CENGfb/DOgFEf79ChjW7gMJ+f4Z8hHv6fD3FOAG5if3zOX0NAYOGPL3ARECQfQWHejbA+0J+fHs5S0AAskA/gzl/P3qHPzH+w\
                ce+v35Cfb30xHtCwIQAuzt1AvsHNj57eYK7eUfDd4PGuXyFBEKAgDiLuf0KCMB5N/348j1UOz28gUUFgYR/R4A9u0mJPkjE/Pkt98byRb1B+IhCBryCcr5\
                L9ULEvjn8xkg7hAaFNML3+js+h/qARLwz/sFA/cT4/7jG9z2BhXyCwoB7woc4f0X3/zyH/ILAeX+6+oFEAQH3ucgDdkBANsl4enaIvgIDPHYEwIvBfbxxe\
                4h2hz5++8Q4//u8Q4oEvILE/3x8dscHgvY7vrU6MQABRAfDiIDAhz9DwnvDe7pG9zzCSf1+P7/IAH8FAgNG/MI4PH/3fUICPkDDeMX5sz7DwPeEgDd9fLT\
                Je76EfgK7v34BxgT7wYL3wPcAcj8+fkGJOn8Eib4+QjrBQgDAgIY3Q8PCs4U9vDwEAP7DPzy3+4R+NoQDOYZ7P4T+BT1C+jm/wn5HBkSvhn3CAfSDgDa+B\
                T4OvE38AEJCwz3H8oWCxAwAdf5CPX28+rrDgAF89cOBvcXIg3+/BcQCynn5i/g8vsHEvjT4gkUERQVDAjj8RUi8x726ucW6RYW/uvpAt/36C0B3/T+BiLn\
                //j3CQrR4Q/yDwUQBhcYK9EH8hj2KP0aCtfv/e4KBvPZFdRB5xDnCegL3+4GCejm+vHz6AQHGQX49Psv4f4P8QD+CBsfEwP2+/UiE/ce+CMS8gUI+vz79w\
                fuAu8A3B301DoR997bFgoBC+Iq++jtJgfT/A/75+H97On9IP/WE/jx3xYCCgwSBgcQ7v7ZF/v0D/oG/gIOIRgAMe4cBdgLJrseAPAQ1CzT6QQa7Q/27vz1\
                +A8EEQfs+OsL2PQK7/3r8+wG+iXwAPoE+vgcAxn69eX4L+4dAf/i6ffz7R/+CfYc9u4b6/Xl/+rbA+MdFA/x6/32Je4MANAKAxv/DAvzGyLu59gI+BwC6g\
                3/7t8PE8QFD/QQCEAFDAn6BPoUAQMg/Ar1u+v58/4IEx4E9PwXHu3w8/sZ3x4bDOr3ACoG8u3M8h8D//UH7QEZJBsA9gXyDBMbHO0GNx0gBxDRA/AWDggD\
                EDHaIxDnExfQAPr3BwsQ8ucSAg4D7P7g2yIQG+4V9+78COHt6O4H2i0Z7AASGNMu9/r/Eu/+GRkmDvck5wrU9Nwa8fLj9PEYGiEMAPjuzxDgHf4U9xruDP\
                8i8LPGAw4oAwQH3AEhEOQM5y4a6s8RMf4j6ury9BET5ecC8yH5CPMG6PH98wYlACT16AUJF/vrDgPrMegEEBIICPgI7fn17hUCBOAI4Bs8/O7o/vgt+w35\
                DBno9BMOLQEAGv3PJOIG4f8K/eoZFO70B/gH3gvZ3hblB+rq7/zz9PwD/gbv/QYG/PcB3wEQ1fEw8Nc85B4P9ygi7f0L8u8Y+uvvH/cTAfXqFQ8M+vroCd\
                cA+O8p5iUF6OwRAhX9/PgF+BYJ9y4B4f8eHBMC+gf34dEMCQgFCQ0G9vnjDf0OHfzt/fbp3QsMDwwqDOEqz/4FCyj3+drw7gL5I+b98uXzBgYQ/wr38e3x\
                DN0ABQ8b5AOpHuUeGgfoBOLP/N4Q/AD8/wUZDATuJ+D+5/Ea3/LtAAFFL/QNGeH/9e7wCU/86ksA2wH949EYBB349/0HKwHoAfIAKvAfK+oC8x3q//3uDQ\
                oZBfoH+i/08fwlFfP86e8W7jMWDwkACB0TEvvf9gv5/BYGxgXXH+DUwB/z8vbp/woa0LcVD+LqNOfy7wn56wgI1vcjAePsOAUR9O4PHg7uIAgH/w/kBS7C\
                7ucf3PLxOSHrRujh4w4LFPMaIhkQ4yX15jYaGtgRCQTKFhEy3wIS6ejv9wgN0QLh5OkuBNb45gvlAw9A0w3yzBvW+jbnFvfUIzQa1QsKMzARADT5/SD0Gc\
                QCTar1yCXRBAgL6eYCBuoWCBEf6v0hDhEPGxPsDv65AwXtDAoK5Q/24v0mFAXgByrqBvn4GhH6Bf/4Afe+EcoC5gEHGt/x4PP49/kiEhkBDgDvK/gp6vgI\
                6EcQC/oSA/PdIvYSEePX/CEXDtIFrCf++EoB++Pw1+4THjAL8RYC+yr5Awfq6/f2DBwSLL/i1v8N9/0YLv/oGgHmCCYD9B7x4dz7IC8G7dn86dI9FvcJ9v\
                wG1/Xn/hQO29Mg4f4cAAD+xQIszOr/IQAv2grwIPnlQeQCEBIN8z3cEh4/HeEb3+LLFhbyEQ/1EB/RIf7+2gkZHMn0Euf1LjYBGxID1RMxKBbvJQfmCe/p\
                BPz00tQWEMYI7eEI+MIn9wD3+PPxvgbb/esuC+nk3v0G3A/t/RXm5+cdAPcf8RP89Bj8BtkGNSXU6Orr4ukAGdAQKgv+DQPkCwfaLfcjCBDv+hry6QkMGh\
                ch3xUUEhARx/D08uDWHf7yD/Tp5dsN/SzoG8gXHxbc6/vGHCrj8Dv9JeUD4/MCFxzFAusd++gRNvYMDDXZQtr7CdsGAufw+RMQE8TT/A8AMhT1CBn8/OI0\
                8uUV4yD9/R0ZAiLxJvK/9P41FgJFkgMrFgDqK/n06eEnOfn5Gwv8/hopJOj6BO4qG9rxDvYOJfXOJAzv+/YkFgMIQAHj+OUpGBPawicK3+7sFfXd5gcQ+B\
                P0IhWt6B4MAwfuvQkJ9DcBABHo9sjquBfzBAPoEhTK+d0NGPzx8dkbDPgVFykgGgUG8978EQYQMhgi9Oz7CQ2xEwggHxDzBg0gJyAL+fTzDvoC5uwGJP4f\
                9/oG2CAM8gMgwSNW8/AyBe8I4RgrBgIVEQ3iE/cKDzn46P3/8NgM00MpIPrd2Cff/srcIO3S9yHfBwf+NOoa5gzmBuTmBgEiFvIt8fvgzwYZ8h3kBR/mHO\
                Pk7gsSEBoGBgYV+M72G7nl+/fm9wjW4ygH7hX3FQAv6iAH9CTiG/390BMPMOnTu/bs4v7y4wwwEt4KCQrk/tEYKOoA5gfc2un2GgPU5BcvHAUT9zbiE70X\
                Lv33LQLu8N8N9cQBEeEfGQQm9icXF0gSCNQJJTDp5RRV599OSfcDGPcg9fgBFdYK/vsFBQECBuIQrxTzHgm+FSvgCRcZ+977+BQL+BkY5gjTSQ76/hTmFj\
                EF6fnr1uIOGhPzDhQO/A49IQb5Lf4UDNz05+7z4OAB7gDvG/3yHyTtEt0ABBAOHwf+AR4C3MEkFir86esV2jE33wQh6P4XykEK1ugQ6+gg/90J+P0BJDIg\
                APP/3uzCx/b5BPYVDxYc8QgH/gX1+BHyFQ8Kyf4QFxgow8LmERsnAwoDEMoqQe0ZDRUcAdNjKAwHB8DvDSH8xNwnADP44d4G/OIP/QtJ+A/iIEcDFQsPBh\
                kN9fDzUvoMAwY29PLy+gIJ77bfBNwdJQMT+g8C9Pb+HhX41O8Q+izrE/7nJ9INMQz35w338srSFfcLMinm/S/85PP46Q4cA/flGE7SFwTs9O5MIzz1xwLt\
                7e8v0Pnq5An/C/MP+ur8DRcaHxDgBh/0Nf0L8/HbJxQh2gDjCxEY8wr47usHGiP7Kg8N3RYF3wAD9RYmAQ77JrHyAQX2CgYK9w//7wIpFvkD2AcDxRvp8g\
                7/DssZ7/fo/hT9zPPZ6uwK4wrIABQW+An6+v0A2cT9Fvrb/OghBOWDRRNBBgEHCvrX6uYC29cfEQcvJQPlyRXg7+L88vfUxOVLI/0i/fIf+ODiBhbyEyMJ\
                r/gOEtT4CQHqBiD+2vjp5/9ACgUM6P/vEP3xQQXULe0AOwACD+nj7BUpHwzV5RMCIEAdDf4FU/gQ6vDVHdwZ4BTh3inz/jQqCwjuJ9C0C6HN5c8c8/nt9i\
                MPETTb5g/rCgn//jMUWR70Fu3kSxAX2iPh9RvbFQML9wkJ+fv3JyglCOoX6uoQBfMSPPEBBNEz/jvjPhToB8TnPt/bVPX1Awv5wgThDwxA/vwc6A8O3RTt\
                xPf7CfoZ7vDZ7y8E9/L2LC4VHtf/+wsSGREWH2gOzp7WEfrjCDnv6g7TWPsA7hAw5xzl4wcJ1ucsD93/8gDEB/3u8d/w9P7MEcEg+w3YH0UrGQwO0RDx8w\
                gHIy35HAYIFxc4Jv7yCfH3sRD8G04WASUQB+4KCu4JBVMMAf31uMXaE+oZDukPIAD2BOX4qm786fMLCgv58gM6FEgI2tAsGlL/Gf7aBBwG/R3oG7v61//8\
                Vf7gGAELEdgG9eLeJ9ri/ePeLgAtCRTr+cIc9xk4HvzozObsJBET2Pn3IAbYDAzQ9AIUDf0i/xEx2M74ETHWBR4rviYZ6vPX/eDcHv0XMhH37wUMNQXJ+S\
                INDhJC8Qg6/M0b5Qfq6Qsd3toe5F8oMiIOARLqCPbjOkH4FuLt/KfaycH29rkfJ+jv0/3pGgrgQUAX6AjfAu4lvQgA5wYPIuQuHSD/NQwYsQ8G3wILNm4T\
                6wgx4Nrt2d4IAPj4FiXfFCPj6+sQ5gP3/xvZDxby9BAXBg1F7xu2yQIW894b/+kTKwgI9Mw89ggvJgDq2dLG3SHouzscFvroQOnu2A8SI8vdFNIbFRv39h\
                joHxoFHPXw+CECHrf2/SECDve+MwPwCxoBvwbyuPcX9+Pz9jc66Ssh1uP+C/8TCS70FRI3IkI/DgMHTtr3x9EbIt/r9ydH7PwmDQLy2djqA6oQD/cD6AEC\
                EQ0fnvgMA8/s7+Pw30LpLQ4H4RocBwvkEAmj39UREBc9w83aCsr+598R/Kf0AywE7AEE9xa5B1f1F/X39iDG490O6yYC/xEREgX/Ygj5KpT+LSgR3iMAEv\
                YeuQP+DfnvMPAdEt7w8csGwSdpCeAdOB3YA/D37vnrvOQ88/339g/03+4SKgz0EeMYrjUAMxPqHufPAfAUM43U8+430PQW9hMsEhC94RYROCEd7xCX1ci/\
                0RYUL/X49AAWziTE+vhC++DvHPoqLR074xvfGUro2pcBAg/9/VskEgH+FeXiVyks0QXC6iHs5RPl6vPpI/Uh+QbpGL76+h3o+/oaC8/XsS4SDhLuEBoQ8O\
                3/By3e4SQT7gr21dbp5O3X1ebl6wA/G9/l4PC80sD1L9kMJPn3DuclJdz0LcAZKc4p2T8j7Q0F5Pv0PAhZJf4N4PgPwvTu8zgFDPNcAv7n/gImutLkMhkI\
                zRAECCIqCwHg4wXcvunDBgQA+078GWrKHe0t5uru9v/58/TKpQLHFRIm+zI7BAMvRO7wVRrf+cblo9AMG7gz6tc8HBACIScKQwQC5dn37wrO8kAWE/bt7D\
                X84QYS10ETFePi6Lrm4zwL0uToOwTtCc/6FQobAdcnEg38svMIxLwwGNzW8x/jEv/hEPUf2PbP+e0brTALORzs7u0c9/QaEOkC7uDw+gXhJFlzxSMkGRcd\
                Fc3o6Oz01hPv4THRLNL0BAgvORkcBn/0Tug0NwfVMlHyDQj9ITEKJgbS9Nm498oSDg0YTPnx6QMO6Af/5jwODPwX+OQ+7NPaPevqH/712gjTTfcGGdDv7i\
                gSVyDt/AoYHt7tDzvk0uT9Cvng68vLQOr4K0323/Dr6PXiGAnp3vIBIeHy7+cY//4K6f/xFQwANAsK+OMBHAT/9w/M8/0q/Pj0KQQQ+BLXEwsf9tUQJgRO\
                6vrHLeYULpsR4QL2XgAU+d4XxgkxxwslvMYF4AoT8woE/AP3Avm5CiMe3isR6+kLt+7yER7p2ynJyiz5/9IGEuwl6Smy1PXL/MD+7grgEQLV+fTsDNQIFA\
                f0Fz6v7vIDFD7A6SLhDAV1B9wD+0AKOfrkFf7/7xPj+NH79sTyCdIA7MO+0/suKwDx2w36CBn+MxXh++Ds8vTT+8TmMCMa6yX1GDbN5TTv5k4oKeoK3wvK\
                Ebj4EjAW
                """),
        // The same model with its adapter for general use. The adapter changes the states above layer 16; these are those of the model alone.
        // The threshold finds as many unsafe prompts as the probe above (58 %), and lets two of 1,000 ordinary requests pass for unsafe.
        GuardrailProbe(
            fingerprint: "a8af0622d2358987", layers: [10, 14, 16], usesAssistant: true, scale: 0.00149111, bias: -0.020064,
            threshold: 2, marginOfSuspicion: 1.4,
            weights: """
                9wfnBAwI/fjv2e/e9AsKDO3T3+3wBv71QB/5/C/p/BP8BuXh/SQfIgjZB/jrDgnv6hwIMeE4CSAJ/hAY+AL39Ab4+eMa4eIWI97nBc0A0ywTCD0hPQIa/BMTDAjhLQ\
                Ie3tcNHPDmDu0m4O/0ECHUE/vcAfYOCysR9Q324xvuAefc+Org9RfvHxrjCQED5z8E4c/r0QMDIO7o/eH2FAvTDg0IzxESLAAH6fr8LOHzCAn1Cs/jEBYDHgAg6+kl\
                1BPn1yQZ7QUXJhgdJwf4BCsY8e7mA+sOABfmGhQMGfj/+TgNAvrqAPQ/5e/+wvIQA+0LId8e8QL5IvT68TTqJNoIvQgMBAgDJRLf7v0Y+t/wAObuxB3m7wD6DOD+4Q\
                3Q7OYh6Ab3ChcG0AoVAAz8IPwQ/ebu/er1TR4M8u/6HdQUEtkSzvXp9u0L6BsaBRgjFTHtDgf/2NMJ+gL6I+wb9P4Y3/jh8vIPKfQINRsa9w/878oYDCfTBAwXCg/0\
                DwEQMeoE8/3WFeoAHCPzHgPU5O8YNgIb7g33FA4MCBH0ByC96hEE/vAqH7sGGALTyQnVABIE2fYZKSH55+X34/sC3QXsAwj3Aun08QgtRwL+6b731wkbDff/BRXq8t\
                IdHNvw7Cn/IyMRKBge1/wY7CXn3iX6AAsXGwTkAhgV9c3Kx/cC9vXw7+oIC+IUBecODPrq4QP6INvcys794xzt+vsJB0v7/h0V3vvvAtMi0A8QFg8k8xfTFPvbA/sI\
                2tgF8yAE5vQAzQoJB/sCCeH6/vwHKePnEhAV4voI6Q8CDQD66AEy8/EawPgkEQABBiTWCwYZCNv7Hxzl/fg++vIg7/YkD9sxENQR5x3X+yT70dLl++8i+wz8/gcSHR\
                Lz7Q3+5doR2fXbCwYaAgX14EXAOg0E+S4PAd8D8AkoGAT11+bwBykm9AbbEuvfDAXr/vD3zxveAfYf/x81FRD25Azp9+EEB+wG7+3fGhvWDb0ft9LN5O8hnPgDBAkj\
                AgjP4wAbHxAE5vIV1+wCAxoM8OP07CcLIuo9EAIN6R456/v5BgYHC+oDCgY0CiMaCRbJ+u7z8f35SQj15Rcj9P4D/ybPCvncACLm6+rcEBH7zBIr7/4EFhED+xrbFx\
                P8BegZAf8nGSrmHAgtCx4aIOoUCwr18g/yEf0N6BIY7B8JBPYCAgvt2yoI0uT5ARrt0wkaLwIBDSD1/vgk8BXvCCwJCvIeBeTyAgHn2Avt5+8G5twtFeMKBgALFRrw\
                9tzwCibzKyLSCdX6+vwEDQIk+0vWB7sOGyIAB+0Q7AsY+fjs/fA9+FIDLP4WC+gfGtIQDd74uwQIDQlSHTUBFtkH6gDpCQj+3BodMO0e+jD1AyPM/RICKusC/fQaGx\
                PR3voA8wUWMD/GMTsN9hLd8PHy/Q4U/0EU6RYY9CTt2+zeBMTyFPP7EA8O6BIgAAQyIMYH3wMH+d8Z6+3k5yEW8QH7Bd/3+xP0/AIO1Pr9+xnyHtr6wicOChkH4fgf\
                /Djo5gPc/igE+uUJ2y8PEur6/OrFCAYnKgz+xAUCD+31/Pgg+ekNHg/U0eIAEAI84+nt8/L2GwAG5fUVvfkOA//28OUHAOw97wo5IPrL7wTzM/0Q4+EEEQXv7d75Gi\
                QS5v7l0wIFFMAFKBfyEgMeHvD//gm9EO0ByOnU+/0tAu8DGtIh39nf+vjMFdrQ/AcT+AYiJxEPDAP95/f+/BHg0xcd9QYD8g4R/Qn7CO8F2QH5CekY/OrdQez9EPPi\
                5v4CBxzTBTQXzDQjPQD6Ei360CH3Jh/x/wP3B9oqCg0ECQjz1/4fLenvIg4TFRUa59XMvQYG4QD47Bn3FvQPGgkY7fsaBwD6H8/tA/vqJOn6CgDTA/XpQxT7/wD1Dd\
                3n4wJi+tLUF/8KHPgB9QPjAt3QLAESCh0J5Df8LuPdBiMc8A8tEOw49wscGM/eMx/d/xQMBUQn/AH5ChH8+NsfG+IXAPQCEAsk7w8NFAUD4g0XAwzT/uQjDfj88REM\
                CPot+QEP3QkXFCER/BcM/RQy6ujt8NoA9Ajm/SoCDeHsrgHhD/kB/w0R1PAlE/f5/RAj3Afy7/be1AHwExgTOw4b99rdDg4LCe4SHhAmDzba++kk5/cMCBb8DOL73d\
                9J9fTtFeD12iQH8xwDGgYPGBwZDPojDxDz/N0JJQTiCg8BBfk4Duj+BtLh/Q8S9hMS8wQGAgoAEvPgEg8W9AwO9UUS5wv3ABvw4L3yAewN3u/3/vER7g/U1vJD4yQV\
                B/P3D/733QcDAuPlBu0I8QX4AQYgwfgDGwLJARwDEukBDc4CEfn3CCjR7gcW+gAa9grk8/bqGuYS+Cn/zN/4RgYZGOH+CBkMOvgdC+jK9uUH7wDt4i37CcIFAgnd8u\
                jqI/HI+QQv7QH8DPjkxgP/DvsDCef10yL3+Mnw8eMH5+UZC9giF9n4Ax4cBfTcP+P5MRb809bz5MHwTuMC+fwYGwsSAhYCA+YyMegaDffWveIYww/2/e4n5hzqAMTt\
                H9kUIg349Bop/f8jGNEY1ejR7hnqCA38xvAI//wS5AfWEtruCRX4CAL68PEh3vYS2PsBHer9DvD08uL0I/4J0uMYB74DBN8k5OfMIPsODu3dCRBAFO/myPUf0CDzAf\
                Mb5frv+BMsKugHEvDq6MsYLRC+7ALg6doBAR0cGyIKBBTwDw/eE+f0I978CTzv+P7+GgQDFhUMGP8K4u8EAAAAC/sDC9sH6Nz8CALPF/7e9u+pHuAGF/IT7PruBCQS\
                /P0P5fLcD+UKDQIVGNv+Dib47w/wDAH9AQEW4BoF/dQE8+r/FwzoBwbg1OkT/8UE/eIa7wIOESQTFeLn+wcACxIYwg7vCxHpDgDG7hP6KOE37P8HBv4ALN4iHwor/s\
                r+FPPw6wb1DgIF4dsNCfALKQ/4CRAKAR7y9B3b8e0DEvfN4xIVDAkfIA7m8g0n+Arr79oS5hUTBe/w/e396CwR3+b1+UXlBfUADRPY3wT3/v8Z/gMWI8AHAQv7JPsS\
                FtTt9PQS/+zUEMlC6RfYC+sNz/MICPnm9+H2BAn5EPny7fsq8Pz+8f0B9ww5BPfY/vckCfMa9yAb9vkU9P367A71B+8B3iP11TQWAvXqCfr1JfQs+OHqIg3T6P/66O\
                b49O38NP/QDfLrwRkFBh8fAQAZ5PbgI/n4H+QL+wQOIBAOJv4jEdYWQs8K+u/+xSrN3gAN6wju8ur/8woJEAja8vMUvvoA8gPg3/EB/hvyAPP5+vUsDiEC+dMFNOkk\
                +Prm5/4D6in5AugIEewq0/bz8/72+cwlDBvk7esAMOsHDN8S9/75CwT4FSYC2N0N/jQD9goG4OYDEtT/CekOCi74CQjyD+AM7Qcl8P3qsOTvDQsQCx0E9fQcDOj58w\
                YN5R0wB9z4+yb88+/j8xcF/+4C6QYcLRn+AwXxFBYkIgDtPA8i9QzC+OoYEu0HFzHsDxLjIhvL9f71CxAV8N4NA+gW5AXQ2y0ZKOcU+/3yAdjr5/D61TYm5wYwFNss\
                9PryD/rtEycZGfEQ5BfF594pBezt/uEXJxYP/vzzzhziCf0L4xn3CwskAMXMBxcn+gsU3/4iDd0c2SYj9coMMwgb3env8RYR0PAD6h76Av0M2P745QIhGCXx5AkQGg\
                H0CAzfMur+DxUNC/n74fbu7QQU/9z96RojBPTx/vEx8Aj8ESbm8vARMP3yD/zSH/AC4PsH8OUMF+HzCPMH5wjqyhzjFe3t5grp+OcK/gbi9gICD/D64QsU2ugf9+E1\
                9xsl/Swh5hIV5fQn5vXtJwARBQnxBhMVAenWBM4L9+0o5yQI7eIPAxkL+AL76gwTBTP+8BtDGhP98QwF67QNG/4LEwke/PvjCvgbGvX28ADq2CAOB/Mg/OMu0gADES\
                348N0C6BbtFekI6t/wEv0WDgAD6t/qDOgIFBYsBgidEuUdFQnwAtjH+OAGDwH4/QsmHwniH+Ty6vEp5fHj9f9BEfEJAc4A9f7gB0YJ4kD41xEF8tUUBB8H7/YDOfjo\
                +vgEKAIoLf8M+yjR+/34EwQoBfgF+zPz4/EaFewG7O0X+T4TJwgHEywfI/7d+Q8C6hwXvSfYTcTyrgbCGPDr7Pf0tvMEzOz57fzz3v/i3A3Q4gcRC8znVzkZCb3wzf\
                cF/xoUHhXUDzzDArMe1QEZLRroTOwG6hotDe//QdP1zTEA8jkUMAcY+wbIMQo93v8O++Ye6djpo/EH2uBG5vkMvOvizR0axhML6yjU/ifb+vS6Gisl3Q8eOz/x2yv4\
                ITwJG6r9GNDsDALf7AMC+vnQ4AZO2Sst4hY1EAfrEg/7ONvFAyXxEBs72h0Fzv8ZOvHR8SYwEvsLLNKl7ewrB9e9E+b17vwaH+r58PUH2BUL+DAZ7d72MQc7tfLsD0\
                IeIvoHCQXOJuAM1dDOCwrvC88CyDbM5jD1Bdi3CPdFBwni+Q/p3iEMDw8ZABjkFT8GEa3kz/j+Cw8oYbcjEAf1AS8QBwLi7bsdPxIQ0A0W3K08JvQLv/8r7PP38l1A\
                384G/OseDQqdv8lP1u3xM9om6vvkB9eySc4NJC8g3kMl7P8iFtkcv8vUNR/1LNLo+CgLFM8M6QAa+Kji37jMNhzaG8778iMZD9UNLfMWJwffT7zTINUwFMci/bsGu8\
                8f8fnZ6Bbc/iTTHdBXB+EDBPkO3An54CRT0+ET+O5KJxL49iP+5ez0RxTe3f/csNEY8/ID9iX8+Q3N/AywDRI1/wsA/FwP4zP8+fcG5AE1Ee0O0cPy5dbFTQP6B9/v\
                w/JF8hTg8skrzw3V8+n/K/wGGAwDRhAr9CwUEyXKFwAK2PQVL8gL1DQBSsv26ADoGcEe8CkNB9STDRrvThbfGhfwq+hE8OIU1dYJ3vQg8AkxDgP58xcVCB9E7S7bLC\
                TcH+bE3PE8HAv56yTuMi83Q+QR5OY8H8nVKt708hLSQAvbzTUg/CIgNrfmAu4cFQnkzgnl5xHZPfGz3xEDLgEP8SK+DwH+BwH88qsF+13ytggBEf6ztCrrDBLvJRbe\
                /ekUFjQA7gUJG/H2BR3uJPAB9vACLxz1Ff0Q4Nr2Fd2VGvQvQQbbF9QZACcSCiPRJ+L69+rjOfX48esS2BX72QoDvOdy7uIA1937wEcx9BUPFvjsDBrzEhjQAR8C3A\
                gV6V06ywTk3eLTCvcKUPvPCBnCCeboT+vt4SfZKNPcI+wg0vl/yATv0wwC+hHaGgXoDL4QBfr9JiILJScLCaYIde0i+8nVqC3Rwy7uigQI7iFB4y0AKjfI89gEreYz\
                JuHYrAXM5dn/5e4FDtEHMDYO7+ILJfwZ0BO9A+QFDAUh6AwVJgwitSOhAsj+OOn6MwL37PQHKOTb9a4eFf37AuAX/0Et8+kxJDPLt/YP+fI7R9kPDwAp7fzGQyb0J+\
                MZFfnw9RPvtQUDSh8B/TTa3QsJ9/gr/hHxwk0b/vQYFeoX/BL1FTzd3BQDyAImCgLmBzsewiNBMSvvFzcf/enV8vURLK4N+B7kSPLdLQntCgzNJDIu7h797fsB/+D+\
                9kcA9eQh4lED2wck1NQf1DIm5O4Z69EjGsUGAtvq8g4dCfXu7QfF7gMi3/QFFxQ/FlAH4PHh6hjLEOnj0g84RjMk3cLgEiUjHwkDEuc8J+QS5TtI8ehHRAX24MLoJF\
                nL0O0PKTPi1sj1CPok5c8/A0H+Ik/z8gEhE+6+CufiSg/R+hoRx+nUJtEdFsXg+/07BeLd6vo139Mf8BTn3eT+OjX9Ax4MEbALGtfo6erGDvTpDQIGGgzpJPwRBfLt\
                vvjzBwnz/FG+EuvwKOkOKzT+uOQJ+g4qsQvx0BwjOQUo8NQXIg75HTQJAR/ZPjwh1QbxFeD8AB7vDTIq/AIT/+UU9gYG9yEQAxsb2w0yBBknFO4gOZn17iLjAdMQ6O\
                rx6f0qQAb11lD3zyna3ATvAME56Qu+Dy8DwN/i8/EJBQXOFhflw+vp8Pb+yqwI+dAI/NPB4wehMwEnL+/8Egu6+wj28O0hBgokEQcJ6gfuxeEB9h2+xwhcK/sa/Nos\
                LPi6EublBQbimg4K1tInKVfM2QUSuM+o5y06AQkIHxIE0fXDVPXc8x8EROb/D+jF8BwKHu/TsxfjCR8oUu8LLgIj+ePf4OkD
                """),
        // SmolLM2 135M Instruct, Q4_1. It finds one in seven of unsafe requests: so small a model does not tell them from others.
        GuardrailProbe(
            fingerprint: "29c947167a0d71b7", layers: [12, 16, 20, 24], readsSchemas: false, scale: 0.00168659, bias: -0.010625,
            threshold: 1.983, marginOfSuspicion: 3,
            weights: """
                AAEqLeT8FwmyNQ7m/fvo+v4U5/7tBt8DIfX05RT3+x/9CskR8hkn/OsoBfUU+PEnGyX4KhP8+yk1+vb9HBcP8RHrDQQRDxUD6ukL5wAFAO/yEAcX8fv39i\
                Y3COkWw/YPAhoXPwn9Gw0AEvcJIv/0Fw4X8/DsCf0E3/zjGO/17QL4IfjOJxEICi3j++HQ+hsO2wss1xos1xnnDPsG3xUSDNXOJOzmGhLq4vEeEw0TEeny\
                /SXT9+vvHAUCEfj4JyYJEfoJCv7gEvv8HesB7AwJG+wSDfsQEPchGecQ6/LfBvMjHjHpEyYV+QriB/gV8QD2JuAGMPwOAjIF7REE8/IVAesE/NcQ9PUaCN\
                34/uPz/t0MLNYNDu4h6fL87uwMF/oA5PHzAg8I+fgW/TH8DfbWAwoZByLu8gYg8CcM7i/iFgIZDBPoCe3REggR8SgjGvztByAE/BH7Dx797g/yDAEP/SEG\
                CegQISfqJfnjDAToDB/wBRoyFgzkDwb8Dhb2/eH7EOz9CxUZCPLk2v40H8gUHw/p2Aov3ufx5vcPEd7y8Pbd2/IeCwAO2u7R9Pv0EiMNAgXgEAoa9tsH9R\
                npBBXqI/7oIAX82g8E9gYH7PUE/ecC6tQdD9Lx1RjmG/7kFuMz7fsdDvwTFPwYCvAO+ukC4wkLJf//JAL4JdXqxgIHEA3UAsn6EfIeAAP05QzoFk8gJ/kK\
                0hcZAR02F/McEtsONQkpAPYfBPYK7PoY8eLy9R0ZCQ4W+gjv3/onFBzVCPcN2k8aAuMMLQL0/iQH+xEC4dr44O//0t1FDDby/BTx58vduAD6CTj6ACMqGD\
                UEIOTz/gPK8/XoERza9w4LArwa+wg7E/on2izg9ygq7+UHFeMM+z4p48wX7BYd5Q72ARQzAxHyR9/VG/fjLw0T/O8l4f3tHfARMwdZHhDuuPwIBb/d8fUV\
                DN4BHEYc5x3I9xcp8gMztAYUy+US6tI37yYl6T3a5PkUMgg12f0FJzQk7MgT7hyl4fnCNxbkEwZjJiIIuL35JecQNvXHCxEoLyz44ev0HNsqOygRCBLiIv\
                jV3hQDEQ4zNQ333DT98gvv8B4j3QID2tQNDyH0SCsU6SXg1gML89O+8r3wKQEJH+PyC+wsHbsCIeFPP+suyhYYQ/gZHN8c5Rf6/gINLhIMZ8MbEtUUChO8\
                EdrhDDPh6+32BwoGLhENz/zSJAPH3h0NUUMcAxnv8RfVBfcL0S83uenZBvwlM00FPkLg2/QCIeLUuvzrFvgT6wpF7v37FNA1HPjr4fjRAAd1COjpF7EOJ+\
                cHDfjv3MEZAL7Nm//6Gtjr1rr9xyntGvwC4t2rCw7CBLgPFxQF7sgZ1ObLEg/8KOCkFgXk9Pzh6O4IujbjF/nrB84J2OA0+vb34C3ACQELBO8UBP0hB+sf\
                IBY99NYk0UYmyzUO2SnLCdTSFRwH5vvV7uUH9f3lyPpGxePw0u0UAP8Z70AKjiz/3ewzC/chCLQV+OwwDvcgMyIF5sLxARUA/O8X9NUTJCLe1zQzA+TtMs\
                7fEi4dB//hGf77ucdU5gsgDPxb6xoC/fg16h0lMwH8zg8Z4S/rEwsE+f4dDyUA4t4Y0yKm48nXASYH+PsQ1uoQuwco8PkTI+j62gP07RML+gfHND/9GcAG\
                1fD63fnrEvwkE93YSs/k/NrpRN9ODhYCBwADAe3fABcX6OML7bwOGNbg2iMM+vr4Gim+zDAHzxAO6PwKvhbf2xIICgkMEg8fEDD0Avf7MO0cEwzsFB3+6x\
                G9+P7v6qzhJBgeCCn/EgD9zt7xHOMIFRHwEfUCEyr46PjB+/IFuvMlGRQJK/bayvkXPt/wDhMR8BEe3gLx1VEQ2/nmz+MpFfntQs7iJinnA/Ly7OIFDP4O\
                DxEO7t74B8X559AI5gUcEvIT8/z9TvMCJPj35LwUzSn5AxFJG7bn/u7myvrM5x0STBbYAc/mCBT1HPT+0iDG4cv/5A8KHP8F/ffpAw/l5wAB0PkE7yfjJg\
                HjMxsK7SIH9fb3Ffr7BAvfB/703SQXAgfl+tYS7vPe7BPlBA1Q+uwJ9+EE4OT69dkgyOPjEM7vwA8jBO8RGuAZ2j7I+gk12NwbC+HdR9QjHiXm3CMU1fD3\
                HhjxFRvW/fn0Ef4pGBLs4P322dbI7ssHI8grLP7w2BiX/Qr5B/Tw6TZB1s0p8Rwpzdv+1T0fxhEr+g7g2gXh8gLbAyT0+jbpFu8P6/Yp7vvl4R4gASgC8w\
                4AH+sp3eE2CgMd/+EA9eQ88RcbM+zwENjX50AKHAUs/PncPAL2At8i5g0CEuPgEw5G/iMTHRLl5PAm//XbCtcKBPf+yfK5Nfb9UOAd09bI++wNH/9qzcDx\
                Eg8GteDeCwQwvPfqU+nZ/yAB2SqsFSQdytrVTzjK2qbu/xYZP/3aDZ6ylggHIC8vCuqREToCI19C8eBJowMKIQRSzxE0XPnNxffPEP3p3fAf8tnxJtgEyO\
                jn+era9wkEDin3/uUf++Xm6+5R7SD1xwKr7jznFi0h7DQZCt7ezxNftj6suyLeIO7rw7IKHA0fyBkDGuUJFvsDLwHjKFLhMuT3qhnc9xsMBtkfvAT9/hHX\
                MOur8ysdOSHwDvezwQEI9gYX7jK55fQ77/jqRcMLJycGM0sxLDUG9N3J1+Lw1gb9JvvjJtoS9Br68BUe+id79Byu6Ov9BjEUBvHw2gPyCgs95ADtGVW+Ee\
                s5SO+0Nyrw16jmzf4iHRQiQPqV1sECJuTfKAgJ6Nz6TTnu/00z8SIvPTTU3OzvHiv4CErduvQd7tIg8wbP2fILQQMdwhgyD9zS963zIhr22cwiBC0Ez7jL\
                9xgXVPYE3A7eLfw71CgPB8vjFhbrw9aLAgYsBBv6MA8JFLcqBSPj3gsxIwsj9Vbl+vqpId8WQflR7Aou0e37zQLd/B7bJ/AEEAfv9avq1uLD/uED6Ph/4f\
                UFIPAZGCjlyA3YsgYS+wH/0joCFSz0XkDvJ+EtD5G9Dv8kyBz/Cyv03DHtGgMgHwErDdIcIfL/KsVF+r4ABBw1Gg3KAvoIKFMcz/sh0qEI4eUBDDsiId77\
                u9rw
                """),
    ]
}
